"""Loops: `while` and `for`, over Python's values and over traced ones: what a `for` can run over by
a counter, range, enumerate and zip among it."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Sized
from functools import partial
from typing import Any, NamedTuple

import gtape as tf
from gtape.autograph.branches import decide, zeros
from gtape.autograph.conditions import not_, run_branch, traced_tensor, truth
from gtape.autograph.convert import callee
from gtape.autograph.state import (
    UNSET,
    Snapshot,
    State,
    as_tensor,
    check,
    crosses,
    in_place_of,
    leaves,
    packed,
)
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.dtypes import DType, int32
from gtape.core.tensor import Tensor
from gtape.ops.control.tensor_array import TensorArray
from gtape.ops.shape.creation import range_


class Sequence(NamedTuple):
    """Elements by number: `item(k)` for a counter k of `dtype`, from 0 to `length`."""

    length: Any
    item: Callable[[Any], Any]
    dtype: DType


def sequence(value: object) -> Sequence | None:
    """`value` as a traced sequence, or None where Python can iterate over it.

    Raises:
        TypeError: a traced scalar.
    """
    if type(value) is Sequence:
        return value
    tensor = traced_tensor(value)
    return None if tensor is None else _rows(tensor)


def _rows(tensor: Tensor) -> Sequence:
    if not tensor.ndim:
        raise TypeError(f"a scalar tensor cannot be iterated over; got {tensor.spec}. Write "
                        f"for i in range(n), or tf.range(n)")
    return Sequence(tensor.spec.shape[0], lambda k: tf.gather(tensor, k), int32)


def iterator(function: object) -> Any:
    """The form of range, enumerate, zip or tf.range that accepts traced values; any other as it is
    called elsewhere."""
    found = _FORMS.get(id(function))
    return callee(function) if found is None else found


def _range(*args: Any) -> Any:
    traced = next((t for t in map(traced_tensor, args) if t is not None), None)
    if traced is None or not 1 <= len(args) <= 3:
        return range(*args)
    if not traced.dtype.is_integer:
        raise TypeError(f"range takes integers; got {traced.spec}. Write tf.cast(n, tf.int32)")
    dtype = traced.dtype  # Python's integers have none, and take that of the tensor
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    start, stop, step = (_integer(a, dtype) for a in (start, stop, step))
    # The ceiling of (stop - start) / step, by a division that rounds down; integers stay exact.
    length = tf.maximum(-((start - stop) // step), tf.zeros((), dtype))
    return Sequence(length, lambda k: start + k * step, dtype)


def _tensor_range(*args: Any, **named: Any) -> Any:
    """tf.range, of traced numbers by a counter too, where nothing else is asked for."""
    found = inspect.signature(tf.range).bind(*args, **named).arguments
    given = [found[k] for k in ("start", "limit", "delta") if k in found and found[k] is not None]
    first = next((t for t in map(traced_tensor, given) if t is not None), None)
    if first is None or "dtype" in found or not first.dtype.is_integer:
        return tf.range(*args, **named)
    # In tf.range(n, delta=d) the one called start is the limit, as in TensorFlow.
    return _range(*((0, *given) if len(given) == 2 and "limit" not in found else given))


def _integer(value: TensorLike, dtype: DType) -> Any:
    found = traced_tensor(value)
    return tf.constant(value, dtype) if found is None else tf.cast(found, dtype)


def _enumerate(iterable: Any, start: int = 0) -> Any:
    found = sequence(iterable)
    if found is None:
        return enumerate(iterable, start)
    return Sequence(found.length, lambda k: (k + start, found.item(k)), found.dtype)


def _zip(*iterables: object, strict: bool = False) -> Any:
    found = [sequence(i) for i in iterables]
    if all(f is None for f in found):
        return zip(*iterables, strict=strict)
    rows = [_rows(i) if f is None and isinstance(i, Tensor) else f
            for i, f in zip(iterables, found)]
    known = [r for r in rows if r is not None and isinstance(r.length, int)]
    lengths = [r.length for r in known]
    if len(known) < len(iterables) or (strict and len(set(lengths)) > 1):
        raise ValueError(f"zip of traced tensors takes tensors of known lengths, with strict=True "
                         f"of one length; got {len(iterables)} arguments of lengths {lengths}")
    return Sequence(min(lengths), lambda k: tuple(r.item(k) for r in known), int32)


# By id: what users iterate with need not be hashable.
_FORMS = {id(builtins.range): _range, id(builtins.enumerate): _enumerate, id(builtins.zip): _zip,
          id(range_): _tensor_range}


_SIDES = ("before the loop", "after one turn")

#: How many turns of a loop over something without a length are traced behind a traced `break`.
#: An endless generator has to be stopped somewhere; what has a length ends by itself.
_LONGEST = 10_000


def while_(test: Callable[[], Any] | None, body: Callable[[], object],
           stop: Callable[[], Any] | None, state: State | None, line: int) -> None:
    """`while test(): body()`, until `stop()`; tf.while_loop from the first traced condition on.

    Every condition is evaluated once: the one for the next turn at the end of a turn.
    """
    where = f"{body.__code__.co_filename}:{line}"

    def going_on() -> Any:
        stopped = stop() if stop is not None else False
        if test is None:
            return not_(stopped)
        return test() if stop is None else decide(stopped, lambda: False, test, state, where)

    while True:
        again = going_on()
        traced = traced_tensor(again)
        if traced is not None:
            _Loop(state, where).run_while(truth(traced), going_on, body, stop)
            return
        if not again:
            return
        body()


def for_(elements: Any, body: Callable[[Any], Any], stop: Callable[[], object] | None,
         state: State | None, line: int) -> None:
    """`for item in elements: body(item)`, until `stop()`."""
    where = f"{body.__code__.co_filename}:{line}"
    traced = sequence(elements)
    if traced is not None:
        _Loop(state, where).run_for(traced, body, stop)
        return
    if stop is None:
        for item in elements:
            body(item)
        return
    stopped, guarded = None, 0
    for item in elements:
        if stopped is None:
            body(item)
        else:
            guarded += 1
            _check_length(elements, guarded, where)
            decide(not_(stopped), partial(body, item), lambda: None, state, where)
        found = stop()
        stopped = traced_tensor(found)
        if stopped is None and found:
            break


def _check_length(elements: Iterable[object], guarded: int, where: str) -> None:
    """Refuse to trace on and on where only a run can tell when the loop ends."""
    if guarded > _LONGEST and not isinstance(elements, Sized):
        raise ValueError(
            f"{where}: the loop ends by a traced value, so that each of its turns is traced; "
            f"{type(elements).__name__} gave more than {_LONGEST}. Write while, or for over "
            f"range(n) with a tensor n, which trace one turn")


class _TurnAgain(Exception):
    """One turn told what an `open` variable holds."""


class _Loop:
    """A loop of which one turn is traced.

    Its variables are those read at its head: tensors, and nests whose numbers become tensors.
    Everything else in them must be the same after a turn. A variable that holds nothing before
    the loop cannot be one, but for the result of a `return`, which begins as zeros.
    """

    def __init__(self, state: State | None, where: str) -> None:
        self._where = where
        self._state = Snapshot(state)
        self._missing: dict[int, Any] = {}
        self._entry: list[Any] = []

    def _start(self) -> list[Any]:
        """The tensors of the variables before the loop."""
        self._entry = list(self._state.start)
        for at, value in self._missing.items():
            self._entry[at] = value
        for slot, value in zip(self._state.read, self._entry):
            if value is UNSET and slot.kind == "live":
                raise ValueError(
                    f"{self._where}: '{slot.name}' must be set before the loop, because the loop "
                    f"runs by a traced tensor and may make no turn")
        return self._crossing(self._entry)

    def _crossing(self, values: Iterable[object]) -> list[object]:
        return [leaf if isinstance(leaf, TensorArray) else as_tensor(leaf)
                for value in values for leaf in leaves(value) if crosses(leaf)]

    def _enter(self, tensors: Iterable[object]) -> None:
        rest = iter(tensors)
        self._state.store([packed(value, rest) for value in self._entry])

    def _leave(self, stopping: bool) -> list[object]:
        """The tensors of the variables after a turn, which may be the last where `stopping`."""
        made = []
        for at, (slot, entry, value) in enumerate(
                zip(self._state.read, self._entry, self._state.values())):
            if entry is UNSET:
                if slot.kind == "open" and value is not UNSET:
                    self._missing[at] = _blank(value)
                    raise _TurnAgain
                continue
            if value is UNSET and not stopping:
                raise ValueError(f"{self._where}: '{slot.name}' must keep a value through the "
                                 f"loop, because the loop runs by a traced tensor")
            if value is UNSET:  # it is not read on the paths that end the loop
                value = entry
            check(f"'{slot.name}'", entry, value, self._where, _SIDES)
            made += self._crossing([value])
        return made

    def _turn(self, function: Callable[[], object], tensors: Iterable[object]) -> None:
        self._enter(tensors)
        run_branch(function, self._where)

    def _run(self, cond: Callable[..., Any], body: Callable[..., Any], first: list[Any],
             limit: int | None) -> None:
        while True:
            try:
                made = tf.while_loop(cond, body, [*first, *self._start()],
                                     maximum_iterations=limit)
            except _TurnAgain:
                self._state.restore()
                continue
            self._enter(nest.flatten(made)[len(first):])
            return

    def run_while(self, again: Tensor, going_on: Callable[[], object], body: Callable[[], object],
                  stop: Callable[[], object] | None) -> None:
        def turn(_: Tensor, *tensors: Tensor) -> list[object]:
            self._turn(body, tensors)
            found = going_on()
            traced = traced_tensor(found)
            return [truth(traced) if traced is not None else as_tensor(bool(found)),
                    *self._leave(stop is not None)]

        self._run(lambda again, *_: again, turn, [again], None)

    def run_for(self, elements: Sequence, body: Callable[[Any], Any],
                stop: Callable[[], Any] | None) -> None:
        known = elements.length if isinstance(elements.length, int) else None
        if known == 0:  # no turn is traced either: it would read a row that is not there
            return

        def cond(k: Tensor, *rest: object) -> Any:
            more = k < elements.length
            return more if stop is None else tf.logical_and(more, rest[0])

        def turn(k: Tensor, *rest: object) -> list[object]:
            item = elements.item(k)
            self._turn(lambda: body(item), rest if stop is None else rest[1:])
            going_on = [] if stop is None else [as_tensor(not_(stop()))]
            return [k + 1, *going_on, *self._leave(stop is not None)]

        counter = tf.zeros((), elements.dtype)
        first = [counter] if stop is None else [counter, tf.constant(True)]
        self._run(cond, turn, first, known)


def _blank(value: Any) -> Any:
    """`value` with zeros in place of its tensors."""
    found = [leaf for leaf in leaves(value) if crosses(leaf)]
    made = zeros([as_tensor(leaf).spec for leaf in found])
    return packed(value, (in_place_of(leaf, zero) for leaf, zero in zip(found, made)))

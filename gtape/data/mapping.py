"""Mapping: datasets of what a function makes of every element, or says of it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from collections.abc import Iterator as Elements
from typing import Any

from gtape.core import nest
from gtape.core.device import CPU
from gtape.core.dtypes import bool_
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.placement import current_device, on
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.calls import Call
from gtape.data.dataset import Dataset
from gtape.data.failures import failed
from gtape.data.fetching import refuse
from gtape.data.rows import Rows
from gtape.data.sending import uploaded
from gtape.data.stacking import loosened
from gtape.data.workers import in_threads


class Mapped(Dataset):
    """A dataset whose elements a function of the user makes: their spec is that of the results,
    which is found from the first element where tracing does not tell it."""

    def __init__(self, call: Any, spec: Any, *inputs: Any) -> None:
        super().__init__(spec or (lambda: self._found_spec()), *inputs)
        self._call = call
        self._told_by_elements = spec is None

    def _found_spec(self) -> Any:
        for element in self._iterate():
            return nest.map_structure(loosened, elements.spec_of(element))
        raise InvalidArgumentError(f"element_spec: {self._call.what} gives no element that would "
                                   f"tell it, and its function cannot be traced")


class Map(Mapped):
    """function(element) for every element, in order."""

    def __init__(self, dataset: Any, function: Callable[..., Any], threads: int | None,
                 deterministic: bool | None) -> None:
        call = Call(function, dataset._known_spec, "map")
        super().__init__(call, call.spec, dataset)
        self._threads, self._ordered = threads, deterministic is not False

    def _iterate(self) -> Elements[Any]:
        rows = self._rows()
        if rows is not None:
            return rows.elements()
        upstream = self._inputs[0]._iterate()
        if self._threads is not None and not self._call.stateful:
            return in_threads(self._call, upstream, self._threads, self._ordered)
        return builtins.map(Placed(self._call), upstream)

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()

    def _rows(self) -> Rows | None:
        if not self._call.rowwise:
            return None
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.mapped(self._call)


class Placed:
    """A call that says of which element an error came."""

    __slots__ = ("_call", "_number")

    def __init__(self, call: Any) -> None:
        self._call = call
        self._number = -1

    def __call__(self, element: Any) -> Any:
        self._number += 1
        try:
            return self._call(element)
        except Exception as error:
            raise failed(error, self._call.what, self._number) from error


class Predicate:
    """A function of elements that says yes or no."""

    def __init__(self, function: Callable[..., Any], spec: Any, what: str) -> None:
        self.call = Call(function, spec, what)
        self.what = what
        found = self.call.spec
        if found is not None and not (isinstance(found, TensorSpec) and found.dtype is bool_
                                      and found.shape.rank in (0, None)):
            raise ValueError(f"{what}: the predicate must return one boolean; got {found}. Invalid "
                             f"`predicate`")

    def __call__(self, element: Any) -> bool:
        made = self.call(element)
        if not isinstance(made, EagerTensor) or made.dtype is not bool_ or made.ndim:
            raise InvalidArgumentError(f"the predicate must return one boolean; got {shown(made)}")
        return bool(made._a)


class Filter(Dataset):
    """The elements for which a predicate is true."""

    def __init__(self, dataset: Any, predicate: Callable[..., Any]) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        self._predicate = Predicate(predicate, dataset._known_spec, "filter")

    def _rows(self) -> Rows | None:
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.where(self._predicate.call)

    def _iterate(self) -> Elements[Any]:
        return builtins.filter(Placed(self._predicate), self._inputs[0]._iterate())


class TakeWhile(Dataset):
    """The elements before the first for which a predicate is false."""

    def __init__(self, dataset: Any, predicate: Callable[..., Any]) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        self._predicate = Predicate(predicate, dataset._known_spec, "take_while")

    def _iterate(self) -> Elements[Any]:
        wanted = Placed(self._predicate)
        for element in self._inputs[0]._iterate():
            if not wanted(element):
                return
            yield element


def _with_state(state: Any, dataset: Any) -> Any:
    """The spec of (state, element), where that of the elements is known."""
    known = dataset._known_spec
    return None if known is None else (elements.spec_of(state), known)


class Scan(Mapped):
    """(state, element) -> (state, result), the results."""

    def __init__(self, dataset: Any, initial: Any, function: Callable[..., Any]) -> None:
        self._initial = elements.hosted(initial)
        call = Call(function, _with_state(self._initial, dataset), "scan")
        if call.spec is not None:
            _check_pair(call.spec)
        super().__init__(call, None if call.spec is None else call.spec[1], dataset)

    def _iterate(self) -> Elements[Any]:
        state, step = self._initial, Placed(self._call)
        for element in self._inputs[0]._iterate():
            found = step((state, element))
            _check_pair(found)
            state, made = found
            yield made

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()


def _check_pair(found: Any) -> None:
    if type(found) is not tuple or len(found) != 2:
        raise TypeError(f"scan: the function must return a pair, (state, result); got "
                        f"{shown(found)}")


class IgnoreErrors(Dataset):
    """The elements that can be computed, without those of which an error comes."""

    def __init__(self, dataset: Any, log_warning: bool) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        self._warns = log_warning

    def _iterate(self) -> Elements[Any]:
        upstream = self._inputs[0]._iterate()
        while True:
            try:
                element = next(upstream)
            except StopIteration:
                return
            except Exception as error:
                if self._warns:
                    import warnings

                    warnings.warn(f"ignore_errors: {error}", RuntimeWarning, stacklevel=2)
                continue
            yield element


class UniqueElements(Dataset):
    """The elements without those that came before."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)

    def _iterate(self) -> Elements[Any]:
        seen = set()
        for element in self._inputs[0]._iterate():
            key = tuple([_content(leaf) for leaf in elements.flatten(element)])
            if key not in seen:
                seen.add(key)
                yield element


def _content(leaf: Any) -> Any:
    """What equal leaves have in common, and others have not."""
    if leaf is None:
        return None
    if not isinstance(leaf, EagerTensor):
        raise InvalidArgumentError(f"unique compares tensors; got {shown(leaf)}. Write "
                                   f"tf.sparse.to_dense(x) or x.to_tensor() in a map")
    array = leaf._a
    return array.shape, tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()


def reduced(dataset: Any, initial: Any, function: Callable[..., Any]) -> Any:
    """function(... function(function(initial, e0), e1) ...), on the current device."""
    refuse("reduce")
    home = current_device()
    with on(CPU):
        state = _reduced(dataset, elements.hosted(initial), function)
    return state if home.is_host else uploaded(state, home)


def _reduced(dataset: Any, state: Any, function: Callable[..., Any]) -> Any:
    call = Call(function, _with_state(state, dataset), "reduce")
    if call.spec is not None:
        try:
            nest.assert_same_structure(state, call.spec)
        except (TypeError, ValueError) as error:
            raise TypeError(f"reduce: the function must return a state like the initial one: "
                            f"{error}") from None
        for old, new in zip(nest.flatten(elements.spec_of(state)), nest.flatten(call.spec)):
            if getattr(old, "dtype", None) is not getattr(new, "dtype", None):
                raise TypeError(f"reduce: the function must return a state of the dtypes of the "
                                f"initial one; got {new}, initially {old}")
    step = Placed(call)
    for element in dataset._iterate():
        state = step((state, element))
    return state

"""Feeding: iterators among the arguments of a call. Their next elements are its arguments.

`get_next` in a trace is a symbol for the next element of the call's iterator. Before a call as many
elements as the trace takes are fetched, their tensors are arguments of its program, and after it
they are gone from the iterator. How many it takes is found by tracing: where there are too few,
more are fetched, and it is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gtape.compile.frontend.signature import Arguments
from gtape.core.context import active, tracer_now
from gtape.core.device import _scoped
from gtape.core.errors import NotTraceableError, OutOfRangeError
from gtape.core.tensor import EagerTensor

if TYPE_CHECKING:
    from gtape.compile.frontend.function import Function
    from gtape.data.iterators import OwnedIterator
from gtape.core.annotations import TensorLike

#: The classes of iterators; they have `_peek(count)`, `_drop(count)`, `_leaves`, `_form`.
FED: set[type] = set()
#: What a trace gets in their place, by class: (elements, whether there are no more) -> stand-in.
stand_in: list[Callable[..., Any]] = []
#: More elements than this a trace does not take of an iterator.
#: Each is an argument of the program, and is fetched before every call.
_MOST = 64
_END = "End of sequence"


# No `Exception`, which the traced code might catch as its own.
class More(BaseException):
    """A trace takes more elements than were fetched."""


class IteratorArgument:
    """The next elements of an iterator, as an argument of a trace.

    Args:
        elements: the next ones.
        ended: whether these are all that there are.
        source: the iterator.
    """

    #: Its elements are arguments themselves.
    _walked_ = True

    def __init__(self, elements: Sequence[TensorLike], ended: bool, source: OwnedIterator) -> None:
        self.elements = tuple(elements)
        self.ended = ended
        self.source = source
        self.taken = 0

    def replaced(self, elements: tuple[TensorLike, ...]) -> IteratorArgument:
        """The same with symbols in the place of tensors."""
        argument = stand_in[0](elements, self.ended, self.source)
        argument.counted = self
        return argument

    def take(self) -> Any:
        """The next element, in a trace.

        Raises:
            OutOfRangeError: there is none. More: it was not fetched.
        """
        counted = getattr(self, "counted", self)
        if counted.taken < len(self.elements):
            counted.taken += 1
            return self.elements[counted.taken - 1]
        if self.ended:
            raise OutOfRangeError(_END)
        if len(self.elements) >= _MOST:
            raise NotTraceableError(f"a traced function takes at most {_MOST} elements of an "
                                    f"iterator in a call; take them in a loop around it")
        raise More


class IteratorArguments:
    """What a function knows of calls with iterators."""

    def __init__(self) -> None:
        #: How many elements are fetched before a call.
        self.wanted = 1
        #: By what a call looks at: the function of the program, None where there are too few
        #: elements; and how many a call takes.
        self.fast: dict[Any, Any] = {}
        #: By the pattern of the arguments: how many elements the trace takes.
        self.taken: dict[Any, tuple[int, ...]] = {}


def fed(function: Function, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    """The result of a call of a traced function with iterators among its arguments."""
    if tracer_now() is not None:
        return function._called(args, kwargs)
    feeds = function._feeds
    while True:
        packs, key, tensors = _packed(args, feeds.wanted)
        executable = None if kwargs or key is None or active() else feeds.fast.get(key)
        if executable is None:
            try:
                return _traced(function, feeds, args, kwargs, packs, key)
            except More:
                feeds.wanted += 1
                continue
        entry, taken = executable
        for (source, _), count in zip(packs, taken):
            source._drop(count)
        if entry is None:
            raise OutOfRangeError(_END)
        return entry(*tensors)


def _packed(args: tuple[Any, ...], wanted: int) -> tuple[list[Any], Any, list[Any]]:
    """The iterators with their next elements, what the call is found by, and its tensors."""
    packs, tensors = [], []
    parts: list[Any] = [_scoped.get()]
    for value in args:
        kind = type(value)
        if kind in FED:
            elements = value._peek(wanted)
            packs.append((value, elements))
            parts += (len(elements), value._form)
            for element in elements:
                for leaf in value._leaves(element):
                    if type(leaf) is not EagerTensor:
                        return _rest(args, packs, wanted)
                    parts += (leaf._t, leaf._a.shape)
                    tensors.append(leaf)
        elif kind is EagerTensor:
            parts += (value._t, value._a.shape)
            tensors.append(value)
        elif kind in (int, bool, str, type(None)):
            parts += (kind, value)
        else:
            return _rest(args, packs, wanted)
    return packs, tuple(parts), tensors


def _rest(args: tuple[Any, ...], packs: list[Any], wanted: int,
          ) -> tuple[list[object], object, list[object]]:
    """The packs of a call that is not found the fast way."""
    known = {id(source) for source, _ in packs}
    for value in args:
        if type(value) in FED and id(value) not in known:
            packs.append((value, value._peek(wanted)))
    return packs, None, []


def _traced(function: Function, feeds: IteratorArguments, args: tuple[object, ...],
            kwargs: dict[str, object], packs: Sequence[Any], key: Any) -> Any:
    """The result of a call for which nothing is known yet, or which recorders look on."""
    waiting = iter(packs)
    stand_ins = [IteratorArgument(elements, len(elements) < feeds.wanted, source)
                 for source, elements in (next(waiting) for v in args if type(v) in FED)]
    given = iter(stand_ins)
    arguments = Arguments(*function._binding(
        tuple([next(given) if type(v) in FED else v for v in args]), kwargs))
    try:
        executable = function._cache.find(arguments)
    except OutOfRangeError:
        for source, elements in packs:
            source._drop(len(elements))
        if key is not None:
            feeds.fast[key] = None, tuple([len(elements) for _, elements in packs])
        raise
    if executable is None:
        return function._python()(*args, **kwargs)
    if arguments.pattern not in feeds.taken:
        feeds.taken[arguments.pattern] = tuple([f.taken for f in stand_ins])
    taken = feeds.taken[arguments.pattern]
    executable.calls += 1
    for (source, _), count in zip(packs, taken):
        source._drop(count)
    if active():
        return executable.recorded(arguments.tensors, function.name)
    result = executable.result(arguments.tensors)
    if key is not None and executable.lasts():
        feeds.fast[key] = executable.entry, taken
    return result

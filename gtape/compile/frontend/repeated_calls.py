"""RepeatedCalls: a procedure of an object, called eagerly again and again, becomes a program.

Nobody asked for a trace, so that it is made only where it cannot differ:

* The first calls run the procedure. It is traced once two of them, alike, changed no attribute of
  the object.
* Calls are alike by the key of a traced function, and by the objects that they name.
* A change of an attribute forgets the traces.
* What cannot be traced, or changes too often, goes on as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import Any

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.frontend.function import Function
from gtape.compile.frontend.signature import Arguments
from gtape.compile.frontend.trace_cache import Executable
from gtape.compile.gradual import GradualProgram
from gtape.core.errors import UntracedBranchError
from gtape.core.tensor import Tensor
from gtape.ops.control.branches import has_premises

#: Calls that change nothing in Python, before a trace is made.
_QUIET = 2
#: Traces made for one object: one that asks for more of them changes too often.
_MOST = 8
#: Kinds of calls that are told apart.
_KINDS = 64


class AlikeCalls:
    """Calls of one kind. `program` runs them, once there is one.

    `quiet`: how many, one after another, changed no attribute; more than _QUIET: a trace was tried.
    """

    __slots__ = ("_held", "program", "quiet")

    def __init__(self, held: Sequence[object]) -> None:
        self._held = held  # their ids are in the key
        self.program: GradualProgram | Excepted | None = None
        self.quiet = 0


class RepeatedCalls:
    """What is known of the calls of one procedure. `look()` gives the attributes it may read."""

    __slots__ = ("_look", "_seen", "known", "traces")

    def __init__(self, look: Callable[[], AttributeWatch]) -> None:
        self._look = look
        self._seen: AttributeWatch | None = None
        self.known: dict[Any, AlikeCalls] = {}
        self.traces = 0

    def find(self, arguments: Arguments, named: Sequence[object]) -> AlikeCalls:
        """The calls like one with these arguments, where `named` are the same objects."""
        if self._seen is not None and not self._seen.hold():
            self._changed()
        key = (arguments.pattern, arguments.shapes, *map(id, named))
        alike = self.known.get(key)
        if alike is None:
            # Kinds that never come again would be kept as long as the object.
            if len(self.known) == _KINDS:
                self.known.clear()
            alike = self.known[key] = AlikeCalls(named)
        return alike

    def run(self, alike: AlikeCalls, arguments: Arguments, procedure: Callable[..., object],
            ) -> None:
        """Do what `procedure(*args, **kwargs)` does with the arguments, for calls that have no
        program yet."""
        if alike.quiet == _QUIET:
            alike.quiet += 1
            alike.program = self._trace(arguments, procedure)
            if alike.program is not None:
                alike.program.run(*arguments.tensors)
                return
        if alike.quiet > _QUIET:
            procedure(*arguments.args, **arguments.kwargs)
            return
        before = self._look()
        procedure(*arguments.args, **arguments.kwargs)
        alike.quiet = alike.quiet + 1 if before == self._look() else 0

    def _changed(self) -> None:
        """An attribute is another object: nothing traced is of use, unless it is the same value."""
        before, self._seen = self._seen, self._look()
        if before != self._seen:
            self.known.clear()
            self._seen = None

    def _trace(self, arguments: Arguments, procedure: Callable[..., Any],
               ) -> GradualProgram | Excepted | None:
        """What runs the procedure, where it can be traced."""
        if self.traces == _MOST:
            return None
        self.traces += 1

        def again(*tensors: Tensor) -> None:
            args, kwargs = arguments.replaced(tensors)
            procedure(*args, **kwargs)

        before = self._look()
        closed = _traced_once(again, arguments.tensors)
        if closed is None or before != self._look():
            return None
        self._seen = before
        gradual = GradualProgram(closed)
        return Excepted(gradual, again) if has_premises(closed.graph) else gradual


def _traced_once(fn: Callable[..., None], tensors: Sequence[object]) -> ClosedGraph | None:
    """The trace of a function that worked without one; None where there is none, or where it serves
    one call only."""
    arguments = Arguments(tuple(tensors), {})
    function = Function(functools.partial(fn), autograph=False)
    try:
        closed = function._cache._run(arguments, arguments.shapes)
    except Exception:  # nobody asked for a trace: the call itself says what is wrong
        return None
    return closed if not closed.created and Executable(closed).lasts() else None


class Excepted:
    """`run(*tensors)` runs a program, or the procedure in the calls that this does not serve."""

    __slots__ = ("_procedure", "_program")

    def __init__(self, program: GradualProgram, procedure: Callable[..., None]) -> None:
        self._program = program
        self._procedure = procedure

    def run(self, *tensors: Tensor) -> None:
        try:
            self._program.run(*tensors)
            return
        except UntracedBranchError:
            pass  # before the procedure runs: its errors have no other behind them
        self._procedure(*tensors)


_SIZED = (list, dict, set)


class AttributeWatch:
    """The attributes of `owner`, and of the objects of the classes `followed` that it holds, as
    attributes or in lists, tuples and dicts.

    Numbers and texts are compared by value; lists, dicts and sets by identity and length; all else
    by identity. `seen == other`: nothing changed between the two.
    """

    __slots__ = ("_seen",)

    def __init__(self, owner: object, followed: tuple[type, ...]) -> None:
        self._seen = [
            (space, tuple(space), tuple(space.values()), tuple(map(_size, space.values())))
            for space in _spaces(owner, followed, {})]

    def hold(self) -> bool:
        """Whether all are the same objects still. It takes no notice of what containers hold."""
        for space, _, values, _ in self._seen:
            # In C, as every call asks.
            if len(space) != len(values) or not all(map(is_, space.values(), values)):
                return False
        return True

    def named(self, name: str) -> list[object]:
        """The values of the attribute `name` of every object that has one."""
        return [values[names.index(name)] for _, names, values, _ in self._seen if name in names]

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, AttributeWatch) and len(self._seen) == len(other._seen)
                and all(a is b and names == others and sizes == lengths
                        and all(map(_alike, values, theirs))
                        for (a, names, values, sizes), (b, others, theirs, lengths) in zip(
                            self._seen, other._seen)))

    __hash__ = None  # type: ignore[assignment]


def _size(value: object) -> int:
    return len(value) if isinstance(value, _SIZED) else 0


def _alike(a: object, b: object) -> bool:
    # A counter or name set to the same again.
    return a is b or (type(a) is type(b) and type(a) in (int, float, str) and a == b)


def _spaces(owner: object, followed: tuple[type, ...], seen: dict[int, object],
            ) -> Iterator[dict[str, object]]:
    """The attributes of an object, and of those that it holds; each object once."""
    space = vars(owner)
    if id(space) in seen:
        return
    seen[id(space)] = space
    yield space
    for value in tuple(space.values()):
        parts = value.values() if isinstance(value, dict) else (
            value if isinstance(value, (list, tuple)) else (value,))
        for part in parts:
            if isinstance(part, followed):
                yield from _spaces(part, followed, seen)

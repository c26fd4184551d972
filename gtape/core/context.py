"""Who is recording in this thread, in what order, and where in the user's program it is.

A place is kept as (code object, instruction offset). Reading the two costs 0.1 us; the line is
looked up only when somebody asks.
"""

from __future__ import annotations

import itertools
import sys
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike
    from gtape.core.op import Op
    from gtape.core.tensor import Tensor
    from gtape.core.variable import Variable


_LIBRARIES = ("gtape", "numpy", "cupy", "keras", "optree")
# Programs of ours that stand where a user's would: messages name their lines.
_OUTSIDE = ("gtape.demo", "gtape.cli")


#: The namespaces of library modules met so far, by id; held here, so an id is never reused.
_library: dict[int, dict[str, object]] = {}


def is_library(space: dict[str, object]) -> bool:
    """Whether the globals of a frame are those of gtape, of what it runs on, or of Keras."""
    if id(space) in _library:
        return True
    package = str(space.get("__package__") or "")
    if package.partition(".")[0] not in _LIBRARIES or package.startswith(_OUTSIDE):
        return False
    _library[id(space)] = space
    return True


def user_frame(frame: FrameType) -> FrameType:
    """The nearest frame at or above `frame` that is no library's."""
    caller: FrameType | None = frame
    while caller is not None:
        space = caller.f_globals
        if id(space) not in _library and not is_library(space):
            return caller
        caller = caller.f_back
    return frame


def here() -> tuple[CodeType, int]:
    """The user's line that called into gtape."""
    frame = user_frame(sys._getframe(1))
    return frame.f_code, frame.f_lasti


def stack_level() -> int:
    """The `stacklevel` that makes a warning point at the user's line."""
    level, frame = 1, sys._getframe(1)
    target = user_frame(frame)
    while frame is not target and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


class SourceLocation(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        import linecache

        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def resolve(code: CodeType, lasti: int) -> SourceLocation:
    """The line of an instruction."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            line = number
    return SourceLocation(code.co_filename, line, code.co_name)


class Recorder:
    """Base of who sees the ops of a thread while it is among `recorders`.

    Tapes take records and marks as the ops write them, into their `_records` and `_marks`, where
    `_known` says that they are wanted. Other recorders are told through `observe`.
    """

    __slots__ = ()

    is_tape = False

    def observe(self, op: Op, inputs: tuple[TensorLike, ...], outputs: tuple[Tensor, ...],
                context: Any) -> None:
        """An op was applied; `context` is what its `record` takes."""

    def _on_read(self, state: object, value: Tensor) -> None:
        """A variable was read."""

    def _on_write(self, state: Variable, value: Tensor) -> None:
        """A variable was assigned to."""


#: Tapes and forward accumulators now recording, outermost first. A context variable: every thread
#: and every asyncio task has its own.
recorders: ContextVar[tuple[Any, ...]] = ContextVar("gtape.recorders", default=())
active = recorders.get

#: The trace that operations of this thread become part of; None: they run.
tracing: ContextVar[Any] = ContextVar("gtape.tracing", default=None)
tracer_now = tracing.get

#: Identity of a value on tapes. Never reused, unlike `id()`; 0 means that no tape ever saw it.
# One call of C, so that threads get different keys without a lock.
new_key = itertools.count(1).__next__


#: The user's frame during a backward walk, whose own frames lie between.
walking: ContextVar[FrameType | None] = ContextVar("gtape.walking", default=None)


def push(recorder: Recorder) -> None:
    # A tuple, made anew: ops that walk over the stack while a tape enters or leaves keep theirs.
    recorders.set((*active(), recorder))


def remove(recorder: Recorder) -> bool:
    """Take `recorder` off the stack; whether it was there."""
    stack = active()
    if len(stack) == 1 and stack[0] is recorder:
        recorders.set(())
        return True
    if not any(r is recorder for r in stack):
        return False
    recorders.set(tuple(r for r in stack if r is not recorder))
    return True


def inside(recorder: Recorder) -> tuple[Recorder, ...] | None:
    """The recorders pushed after `recorder`; None when it does not record here."""
    stack = active()
    return next((stack[i + 1:] for i, r in enumerate(stack) if r is recorder), None)


def push_outside(recorder: Recorder, inner: tuple[Recorder, ...]) -> None:
    """Push `recorder` outside those of `inner` that are still recording."""
    stack = active()
    at = next((i for i, r in enumerate(stack) if any(r is x for x in inner)), len(stack))
    recorders.set((*stack[:at], recorder, *stack[at:]))


class paused:
    """Nothing is recorded inside the block."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = recorders.set(())

    def __exit__(self, *exc: object) -> None:
        recorders.reset(self._token)


class init_scope:
    """Inside the block operations run, whatever is being traced or recorded around it.

    For what a function needs once and not at every call, such as the first value of a Variable.
    """

    __slots__ = ("_recorders", "_tracing")

    def __enter__(self) -> None:
        self._tracing = tracing.set(None)
        self._recorders = recorders.set(())

    def __exit__(self, *exc: object) -> None:
        recorders.reset(self._recorders)
        tracing.reset(self._tracing)

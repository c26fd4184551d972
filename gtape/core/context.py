"""Who is recording in this thread, and in what order."""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike
    from gtape.core.op import Op
    from gtape.core.tensor import Tensor
    from gtape.core.variable import Variable


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

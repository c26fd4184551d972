"""Recording: when a tape records, and which tensors it knows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import inside, new_key, push, push_outside, remove
from gtape.core.errors import NonFloatWarning
from gtape.core.recording import READ, mark
from gtape.core.source_location import user_frame
from gtape.core.tensor import EagerTensor, Tensor

SPENT = ("A non-persistent GradientTape can only be used to compute one set of gradients (or "
         "jacobians). Make it with GradientTape(persistent=True) to ask again.")
_NOT_RECORDING = "the tape is not recording: call this inside its `with` block"


def stack_level() -> int:
    """The `stacklevel` that makes a warning point at the user's line."""
    level, frame = 1, sys._getframe(1)
    target = user_frame(frame)
    while frame is not target and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


class Recording:
    """The part of a tape that watches and records."""

    is_tape = True
    __slots__ = (
        "__weakref__",
        "_auto",
        "_entered",
        "_known",
        "_leaves",
        "_marks",
        "_persistent",
        "_reads",
        "_recording",
        "_records",
        "_spent",
        "_variables",
    )

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._auto = watch_accessed_variables
        self._entered = self._recording = False
        self._clear()

    _records: list[Any]
    _marks: list[Any]
    _known: set[int]
    _leaves: set[int]
    _variables: dict[int, Any]
    _reads: dict[int, list[int]]

    def _clear(self) -> None:
        self._records = []
        self._marks = []
        self._known = set()
        self._leaves = set()
        self._variables = {}
        self._reads = {}
        self._spent = False

    # ------------------------------------------------------------------ recording

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError("the tape is still recording; a tape cannot be entered again before "
                             "its block ends")
        if self._spent:
            self._clear()
        self._entered = self._recording = True
        push(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._stop()

    def _stop(self) -> None:
        self._recording = False
        remove(self)

    def watch(self, tensor: Any) -> None:
        """Record what is computed from `tensor`, a Tensor, a Variable or a nest of them.

        Raises:
            ValueError: a leaf is neither.
            RuntimeError: the tape was never entered, or is spent.
        """
        if not self._entered:
            raise RuntimeError("the tape was never entered; write `with tf.GradientTape() as "
                               "tape:` and call tape.watch inside it")
        if self._spent:
            raise RuntimeError(SPENT)
        if type(tensor) is EagerTensor and tensor._t.differentiable:
            key = tensor._k
            if not key:
                tensor._k = key = new_key()
            if key not in self._known:
                self._known.add(key)
                self._leaves.add(key)
            return
        for leaf in nest.flatten(tensor):
            self._watch_leaf(leaf)

    def _watch_leaf(self, leaf: Any) -> None:
        if isinstance(leaf, Tensor):
            if not leaf._k:
                leaf._k = new_key()
            if leaf._k not in self._known:
                self._known.add(leaf._k)
                self._leaves.add(leaf._k)
        elif hasattr(leaf, "_resource_") and not isinstance(leaf, type):
            state = leaf._resource_()
            self._variables[state._k] = state
            self._note_value(state, state._value)
        elif isinstance(leaf, CompositeTensor):
            for part in leaf._parts_():
                if part._t.differentiable:
                    self._watch_leaf(part)
            return
        else:
            raise ValueError(
                f"tape.watch takes Tensors, Variables and nests of them; got an object of type "
                f"'{type(leaf).__name__}'. Make a tensor first: x = tf.convert_to_tensor(value)")
        if not leaf._t.differentiable:
            warnings.warn(
                f"The dtype of the watched tensor must be floating (e.g. tf.float32), got "
                f"{leaf.dtype!r}", NonFloatWarning, stacklevel=stack_level())

    def _note_value(self, state: Any, value: Tensor) -> None:
        if not value._k:
            value._k = new_key()
        if value._k not in self._known or value._k not in self._leaves:
            self._known.add(value._k)
            self._leaves.add(value._k)
            self._reads.setdefault(state._k, []).append(value._k)

    def _on_read(self, state: Any, value: Tensor) -> None:
        """A variable was read while this tape records: watch it, if that is asked for."""
        if value._k and value._k in self._leaves:
            return
        if state._k in self._variables or (self._auto and state.trainable):
            self._variables[state._k] = state
            self._note_value(state, value)
        else:
            mark(self, READ, state.name, (), (value,), user_frame(sys._getframe(1)))

    def _on_write(self, state: Any, value: Tensor) -> None:
        """An assignment: the new value is watched when it is read, not before."""

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Nothing is recorded on this tape inside the block; other tapes go on.

        Raises:
            RuntimeError: the tape was never entered, or gave its gradient already.
            ValueError: the tape was entered but is not recording now.
        """
        if not self._entered or self._spent:
            raise RuntimeError(_NOT_RECORDING)
        if not self._recording:
            raise ValueError(_NOT_RECORDING)
        inner = inside(self)
        if inner is None:
            yield  # it records in another thread or task, and nothing of this one
            return
        self._stop()
        try:
            yield
        finally:
            self._recording = True
            push_outside(self, inner)

    def reset(self) -> None:
        """Forget everything recorded and watched; the tape goes on recording.

        Raises:
            ValueError: the tape is not recording.
        """
        if not self._recording:
            raise ValueError(_NOT_RECORDING)
        self._clear()

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables watched so far, in the order in which they were created."""
        return tuple(self._variables[k] for k in sorted(self._variables))

"""SharedBuffer: the array in which compiled programs keep the value of a variable, and update it.

A tensor somebody read must never change, so eager code gets copies: one for each time that a
program has written since the last copy. Programs count their runs; nothing else is done per run.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from gtape.core.tensor import EagerTensor


class BufferWriter:
    """What a variable knows of a program that writes to it, and keeps when the program is gone:
    `runs`, how often it wrote, and `lock`, which is held while it does."""

    __slots__ = ("lock", "runs")

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.runs = 0


class SharedBuffer:
    """`array` never moves; `writers` write to it."""

    __slots__ = ("_copy", "array", "writers")

    def __init__(self, value: Any, held: EagerTensor) -> None:
        self.array = value
        self.writers: list[BufferWriter] = []
        #: How often programs had written when the tensor was copied, and the tensor: one object,
        #: so that no thread sees one without the other.
        self._copy = (0, held)

    def _written(self) -> int:
        runs = 0  # asked at every read: no frame of a comprehension
        for writer in self.writers:
            runs += writer.runs
        return runs

    def join(self, writer: BufferWriter) -> None:
        """`writer` writes to the array from now on."""
        if not any(w is writer for w in self.writers):
            self.writers.append(writer)
            # What it wrote before was elsewhere, and makes no copy of this array stale.
            self._copy = (self._copy[0] + writer.runs, self._copy[1])

    def fresh(self) -> EagerTensor:
        """The present value, copied if something was written since the last copy."""
        # Without a lock where nothing was written, which is nearly always. A run that is under way
        # counts when it ends: until then the copy of before is the value.
        seen, held = self._copy
        if self._written() == seen:
            return held
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            tensor = EagerTensor(held._t.xp.array(self.array), held._t)
            self._copy = (self._written(), tensor)
            return tensor

    def put(self, value: EagerTensor) -> None:
        """Eager code assigned a value of the same shape."""
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            # Into the array and not in its place: programs have its address.
            if isinstance(self.array, np.ndarray):
                np.copyto(self.array, value._a)
            else:
                self.array[...] = value._a
            self._copy = (self._written(), value)

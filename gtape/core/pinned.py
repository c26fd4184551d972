"""Pinned: the array in which compiled programs keep the value of a variable, and update it.

A tensor somebody read must never change, so eager code gets copies: one for each time that a
program has written since the last copy. Programs count their runs; nothing else is done per run.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from gtape.core.tensor import EagerTensor


class Writer:
    """What a variable knows of a program that writes to it, and keeps when the program is gone:
    `runs`, how often it wrote, and `lock`, which is held while it does."""

    __slots__ = ("lock", "runs")

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.runs = 0


class Pinned:
    """`array` never moves; `writers` write to it."""

    __slots__ = ("_seen", "array", "writers")

    def __init__(self, value: Any) -> None:
        self.array = value
        self.writers: list[Writer] = []
        self._seen = 0

    def _written(self) -> int:
        return sum([w.runs for w in self.writers])

    def join(self, writer: Writer) -> None:
        """`writer` writes to the array from now on."""
        if not any(w is writer for w in self.writers):
            self.writers.append(writer)
            self._seen += writer.runs

    def fresh(self, held: EagerTensor, array_type: Any) -> EagerTensor:
        """The present value: `held` if nothing was written since it was copied."""
        if self._written() == self._seen:
            return held
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            self._seen = self._written()
            return EagerTensor(array_type.xp.array(self.array), array_type)

    def put(self, array: Any) -> None:
        """Eager code assigned a value of the same shape."""
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            self._seen = self._written()
            if isinstance(self.array, np.ndarray):
                np.copyto(self.array, array)
            else:
                self.array[...] = array

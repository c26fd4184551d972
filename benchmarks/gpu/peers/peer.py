"""Peer: what workloads ask of a library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from benchmarks.gpu.timing import Clock


class Unavailable(Exception):
    """The library is not there, or has no GPU; the message is a sentence for the table."""


class Peer(ABC):
    """A library with its device."""

    library: ClassVar[str]
    clock: Clock

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """What it is made of."""

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """`array` on the device."""

    @abstractmethod
    def get(self, value: Any) -> np.ndarray:
        """A value of the device as float64."""

    @abstractmethod
    def allow_tf32(self, allowed: bool) -> None:
        """Whether float32 matrix products may be rounded to TF32."""

    @abstractmethod
    def free(self) -> None:
        """Give memory that is not in use back to the device."""

    def rows(self, value: Any, which: Sequence[int]) -> np.ndarray:
        """Some rows of a value, as float64."""
        return np.concatenate([self.get(value[i : i + 1]) for i in which])

    def columns(self, value: Any, which: Sequence[int]) -> np.ndarray:
        """Some columns of a matrix, as float64."""
        return np.concatenate([self.get(value[:, j : j + 1]) for j in which], axis=1)

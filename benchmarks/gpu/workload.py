"""What a workload is: its phases with what they cost at least, and its program for each peer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.gpu.timing import Run

#: What `Mark.against` calls the bandwidth of a copy; other marks name a column.
COPY = "copy"


@dataclass(frozen=True)
class Mark:
    """What gtape is held to.

    against COPY: at least `limit` of the bandwidth that a copy has. Against a column: at most
    `limit` times its median.
    """

    limit: float
    against: str = COPY


@dataclass(frozen=True)
class Phase:
    """A part of a workload that is timed by itself.

    Args:
        name: of the phase.
        bytes: what it must read and write at least, every array once.
        flops: the arithmetic of its matrix products.
        operations: the time shown is that of one of so many.
        marks: what gtape is held to.
    """

    name: str
    bytes: float = 0.0
    flops: float = 0.0
    operations: int = 1
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Task:
    """A peer's program: `runs[phase](turn)` does it once with the input set that is in turn, and
    `check()` raises WrongResult if the results are not those of the float64 reference."""

    runs: Mapping[str, Run]
    check: Callable[[], None]


class Workload(ABC):
    """One line of the tables, at full size or `scale` times smaller.

    A column's program is the method named as the peer's `library`: `gtape` for what users write,
    `kernels` for the same by gtape's host functions of kernels, `torch`, `jax`.
    """

    number: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    #: How many input sets take turns, so that no cache holds what comes next.
    sets: ClassVar[int] = 3
    #: Whether float32 products may be rounded to TF32.
    tf32: ClassVar[bool] = False

    def __init__(self, scale: int = 1) -> None:
        self.scale = scale

    @property
    @abstractmethod
    def title(self) -> str:
        """What is computed, with its sizes."""

    @property
    @abstractmethod
    def phases(self) -> tuple[Phase, ...]:
        """The parts that are timed."""

    def task(self, peer: Any, sets: int | None = None) -> Task:
        """The program of `peer`, its inputs on the device."""
        peer.allow_tf32(self.tf32)
        task: Task = getattr(self, peer.library)(peer, self.sets if sets is None else sets)
        return task

"""InterpretedProgram: a graph run node by node, where no native program can be made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.launches.launches import launches
from gtape.core.dtypes import FLOAT8, string
from gtape.core.tensor import EagerTensor, Tensor


class InterpretedProgram:
    """`run(tensors)` applies the nodes one by one: NumPy's functions, or a GPU's kernels.

    `reason` says why the graph was not compiled. Formulas are joined first.
    """

    def __init__(self, traced: ClosedGraph, reason: str) -> None:
        self.traced = traced
        self.reason = reason
        self.graph = launches(traced.graph)

    def inspect(self) -> str:
        """Why there is no program."""
        return f"applied node by node: {self.reason}\n{self.graph}"

    def entry(self, *tensors: EagerTensor) -> Any:
        """The result as the traced function gives it."""
        return self.traced.packed(self.run(tensors))

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Tensor, ...]:
        """The results for arguments of the right shapes and dtypes."""
        traced = self.traced
        values = [use.ref._read_() for use in traced.states]
        made = self.graph(*tensors, *traced.captured, *values)
        for use, value in zip(traced.written, made[traced.results:]):
            use.ref._commit_(value)
        return traced.owned(made)


def why_not(traced: ClosedGraph) -> str:
    """Why no native program can be made of a graph; empty where one can. The first time that a
    machine is asked, a compiler is tried, which takes seconds."""
    from gtape.devices.cpu import toolchain

    return never(traced) or toolchain.why_not()


def never(traced: ClosedGraph) -> str:
    """`why_not`, as far as it is known at once."""
    tensors = traced.graph.tensors
    elsewhere = next((t for t in tensors if not t._t.device.is_host), None)
    if elsewhere is not None:
        return f"it computes on {elsewhere.device}"
    if any(t.dtype is string for t in tensors):
        return "it holds strings"
    if any(t.dtype.name in FLOAT8 for t in tensors):
        return "it holds floats of one byte"
    return ""

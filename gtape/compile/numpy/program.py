"""NumpyProgram: a graph as one Python function that calls NumPy, where nothing native is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.numpy.text import NumpyWriter
from gtape.core.tensor import EagerTensor, Tensor


def on_host(traced: ClosedGraph) -> bool:
    """Whether all arrays of a graph are in the host's memory."""
    return all(t._t.device.is_host for t in traced.graph.tensors)


class NumpyProgram:
    """`run(tensors)` gives the results; the states are updated. Threads may run it side by side.

    `reason` says why the graph was not compiled.
    """

    def __init__(self, traced: ClosedGraph, reason: str) -> None:
        self.reason = reason
        self.graph = traced.graph
        self._count = traced.results
        self._writer = NumpyWriter(traced)
        #: Takes the arguments as tensors, and gives the result as the traced function does.
        self.entry = self._writer.function(traced.structure)
        self._flat: Callable[..., Any] | None = None

    def inspect(self) -> str:
        """Why it is not native, the graph, and the function that is made of it."""
        source = self.entry.__source__  # type: ignore[attr-defined]
        return f"computed by NumPy: {self.reason}\n{self.graph}\n{source}"

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Tensor, ...]:
        """The results for arguments of the right shapes and dtypes."""
        if self._flat is None:
            self._flat = self._writer.function(tuple(range(self._count)))
        return self._flat(*tensors)

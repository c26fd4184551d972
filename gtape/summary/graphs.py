"""Graphs of traced functions for TensorBoard, and the switches of TensorFlow's traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, SupportsIndex

from gtape.compile.frontend.closed_graph import ClosedGraph, listeners
from gtape.core.convert import convert
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.files import wire
from gtape.summary.events import metadata
from gtape.summary.recording import write
from gtape.summary.writers import state
from gtape.trace.graph import Graph

#: The graphs that `trace_export` will write, within another list while they are kept.
_tracing: list[list[Graph]] = []


def graph_def(graph: Graph) -> bytes:
    """A GraphDef of the nodes of a traced function: their names, ops and inputs."""
    names: dict[int, str] = {}
    used: Counter[str] = Counter()
    nodes = []
    for name, op, inputs, outputs in _nodes(graph, names):
        used[name] += 1
        unique = name if used[name] == 1 else f"{name}_{used[name] - 1}"
        for i, output in enumerate(outputs):
            names[id(output)] = unique if not i else f"{unique}:{i}"
        node = wire.delimited(1, unique.encode()) + wire.delimited(2, op.encode())
        nodes.append(wire.delimited(1, node + b"".join(
            wire.delimited(3, names[id(x)].encode()) for x in inputs if id(x) in names)))
    return b"".join(nodes)


def _nodes(graph: Graph, names: dict[int, str]) -> Iterator[tuple[str, str, Any, Any]]:
    """(name, op, inputs, outputs) of inputs, constants and nodes, each after what it reads."""
    for entry in graph.inputs:
        yield "input", "Placeholder", (), (entry,)
    for node in graph.nodes:
        for x in node.inputs:
            if id(x) not in names:
                yield "constant", "Const", (), (x,)
        op = node.op.name.rstrip("_") or "op"
        yield op.replace(" ", "_"), op, node.inputs, node.outputs


def graph(graph_data: object) -> Tensor:
    """Write the graph of a traced function, as `f.get_concrete_function(...).graph`; True if it was
    written.

    Raises:
        TypeError: it is no graph of gtape's.
    """
    if not isinstance(graph_data, Graph):
        raise TypeError(f"graph: write tf.summary.graph(f.get_concrete_function(x).graph) for a "
                        f"tf.function f; got {shown(graph_data)}")
    writer = state.writer.value
    condition = state.condition.value
    recorded = condition() if callable(condition) else condition
    if writer is None or not bool(recorded):
        return convert(False)
    writer._put(0, graph_def=graph_def(graph_data))
    return convert(True)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: object = None) -> None:
    """From now on the graphs of functions that are traced are kept for `trace_export`.

    Args:
        graph: False keeps none.
        profiler, profiler_outdir: taken for TensorFlow's sake; nothing is profiled.
    """
    trace_off()
    _tracing.append([])
    if graph:
        listeners.append(_keep)


def _keep(traced: ClosedGraph) -> None:
    _tracing[0].append(traced.graph)


def trace_off() -> None:
    """Take `trace_on` back."""
    _tracing.clear()
    if _keep in listeners:
        listeners.remove(_keep)


def trace_export(name: str, step: SupportsIndex | None = None, profiler_outdir: object = None,
                 ) -> None:
    """Write the graphs of the functions that were traced since `trace_on`, if any, and end it.

    Functions that had been traced before are not among them: `graph` writes that of any.

    Raises:
        ValueError: `trace_on` was not called; there is a writer, but no step.
    """
    if not _tracing:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    graphs = [wire.delimited(4, wire.delimited(2, graph_def(traced))) for traced in _tracing[0]]
    write(name, b"".join(graphs), step, metadata("graph_run_metadata_graph", content=b"1"))
    trace_off()

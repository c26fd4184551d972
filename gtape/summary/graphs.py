"""Graphs of traced functions for TensorBoard, and the switches of TensorFlow's traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gtape.core.convert import convert
from gtape.core.graph import Graph
from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.files import wire
from gtape.summary.writers import state

_tracing: list[bool] = []


def graph_def(graph: Graph) -> bytes:
    """A GraphDef of the nodes of a traced function: their names, ops and inputs."""
    names: dict[int, str] = {}
    used: Counter[str] = Counter()
    made = []
    for name, op, inputs, outputs in _nodes(graph, names):
        used[name] += 1
        unique = name if used[name] == 1 else f"{name}_{used[name] - 1}"
        for i, output in enumerate(outputs):
            names[id(output)] = unique if not i else f"{unique}:{i}"
        node = wire.delimited(1, unique.encode()) + wire.delimited(2, op.encode())
        made.append(wire.delimited(1, node + b"".join(
            wire.delimited(3, names[id(x)].encode()) for x in inputs if id(x) in names)))
    return b"".join(made)


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


def graph(graph_data: Any) -> Tensor:
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
    found = condition() if callable(condition) else condition
    if writer is None or not bool(found):
        return convert(False)
    writer._put(0, graph_def=graph_def(graph_data))
    return convert(True)


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Allow `trace_export`. gtape records nothing meanwhile: `graph` writes a function's graph, and
    `tf.function`'s own reports say what it costs."""
    _tracing[:] = [True]


def trace_off() -> None:
    """Take `trace_on` back."""
    _tracing.clear()


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """End what `trace_on` began. Nothing is written: write a function's graph with `graph`.

    Raises:
        ValueError: `trace_on` was not called.
    """
    if not _tracing:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    _tracing.clear()

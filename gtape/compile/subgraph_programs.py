"""Branches and loop bodies as programs of their own, once they have run often enough.

A body is a graph that a step in Python applies. Compiling it takes as long as thousands of turns of
a small loop, so the first turns apply it node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gtape.compile.frontend.closed_graph import CompiledProgram, pure
from gtape.core.tensor import Tensor
from gtape.trace import subgraph
from gtape.trace.graph import Graph

#: Turns from which on a body is compiled.
_OFTEN = 256


def compiled_when_often(graph: Graph) -> Callable[..., Sequence[Tensor]]:
    """What applies the graph of a body; `gtape.trace.subgraph` asks for it."""
    turns = 0
    program: CompiledProgram | None = None

    def run(*values: Tensor) -> Sequence[Tensor]:
        nonlocal turns, program
        if program is None:
            turns += 1
            if turns < _OFTEN:
                return graph(*values)
            from gtape.compile.cpp.program import compile_closed

            program = compile_closed(pure(graph.inputs, graph.nodes, graph.outputs))
        return program.entry(*values)

    return run


def install() -> None:
    """Let bodies be run by `compiled_when_often`."""
    subgraph.subgraph_compiler = compiled_when_often

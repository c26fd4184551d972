"""Pace: about how long it takes to run a graph without compiling it, and to compile it; and which
formulas take less time than memory does.

Nothing of it is measured: what is done decides the last digits of results, and these must not
depend on how busy the machine was.
"""

from __future__ import annotations

import math

from gtape.opdef.scalar_graph import Expr, topological
from gtape.trace.graph import Graph

#: Seconds for a node that is applied by itself, for one in a NumPy program, which are joined, and
#: for a number in results.
_NODE, _JOINED_NODE, _NUMBER = 8e-6, 4e-6, 1.5e-9
#: Seconds for a program, and for a node in it.
_PROGRAM, _COMPILED_NODE = 1.0, 5e-3
#: Scalar ops that are cheaper to compute again than to keep.
#: A vector instruction or two each, where storing and loading a value takes as long, and memory.
_CHEAP = frozenset((
    "add", "subtract", "multiply", "negative", "square", "squared_difference", "abs", "maximum",
    "minimum", "where", "clip", "relu", "relu_gate", "zero", "sign", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "conj"))


def applying_seconds(graph: Graph) -> float:
    """About how long it takes to apply the nodes one by one."""
    return _seconds(graph, _NODE)


def numpy_seconds(graph: Graph) -> float:
    """About how long a call of the NumPy program of a graph takes."""
    return _seconds(graph, _JOINED_NODE)


def _seconds(graph: Graph, node: float) -> float:
    return sum(node + _NUMBER * math.prod(v.spec.shape) for n in graph.nodes for v in n.outputs)


def compiling_seconds(graph: Graph) -> float:
    """About how long it takes to compile the graph."""
    return _PROGRAM + _COMPILED_NODE * len(graph.nodes)


def is_cheap(body: Expr) -> bool:
    """Whether a formula is computed again rather than kept for a later reader."""
    return all(n.op is None or n.op.name in _CHEAP for n in topological([body]))

"""Pace: about how long it takes to apply a graph node by node, and to compile it.

Neither is measured: which of them is done decides the last digits of results, and these must not
depend on how busy the machine was.
"""

from __future__ import annotations

import math

from gtape.core.graph import Graph

#: Seconds for a node that is applied, and for a number in its results.
_NODE, _NUMBER = 8e-6, 1.5e-9
#: Seconds for a program, and for a node in it.
_PROGRAM, _COMPILED_NODE = 1.0, 5e-3


def applying_seconds(graph: Graph) -> float:
    """About how long it takes to apply the nodes one by one."""
    return sum(_NODE + _NUMBER * math.prod(v.spec.shape)
               for node in graph.nodes for v in node.outputs)


def compiling_seconds(graph: Graph) -> float:
    """About how long it takes to compile the graph."""
    return _PROGRAM + _COMPILED_NODE * len(graph.nodes)

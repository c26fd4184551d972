"""Which values a forward program leaves for the backward program, and which are computed again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.cpp.loops import CHEAP
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.scalar_graph import topological
from gtape.trace.graph import Node

#: Ops that move elements, or repeat them.
_MOVES = frozenset(("identity_", "stop_gradient_", "assigned_", "reshape_", "transpose_",
                    "broadcast_to_", "broadcast_in_dim_"))


def saved(nodes: Sequence[Node], needed: set[int], there: set[int]) -> list[Any]:
    """The outputs of forward `nodes` to save, so that those with ids in `needed` can be had again
    at little cost. `there` are the ids of what the backward program has anyhow.

    Memory is what counts: writing a value and reading it back costs more than a few operations on
    each element. What was moved is saved as it was before, and cheap formulas of what is saved are
    computed again.
    """
    needed = set(needed)
    for node in reversed(nodes):
        made = node.outputs
        if node.op.name in _MOVES and id(made[0]) in needed and id(made[0]) not in there and (
                _size(node.inputs[0]) <= _size(made[0])):
            needed.add(id(node.inputs[0]))
    known = set(there)
    computed = {id(v) for node in nodes for v in node.outputs}
    kept = []
    for node in nodes:
        if _cheap(node) and all(id(v) in known or id(v) not in computed for v in node.inputs):
            known |= {id(v) for v in node.outputs}
            continue
        for value in node.outputs:
            if id(value) in needed and id(value) not in known:
                kept.append(value)
                known.add(id(value))
    return kept


def _size(tensor: Any) -> int:
    return math.prod(tensor.spec.shape)


def _cheap(node: Node) -> bool:
    op = node.op
    if op.name in _MOVES:
        return True
    return isinstance(op, Elementwise) and all(
        n.op is None or n.op.name in CHEAP for n in topological([op.body()]))

"""Which values a forward program leaves for the backward program, and which are computed again.

Of sin(tanh(x @ w) * 2), whose backward reads tanh(…) and tanh(…) * 2, the first is left: the other
is one multiplication of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.compile_cost import is_cheap
from gtape.core.tensor import Tensor
from gtape.opdef.elementwise import Elementwise
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
    # Backwards, so that a chain of moves ends at the value that was moved first.
    for node in reversed(nodes):
        results = node.outputs
        # A value that was broadcast is the larger one: then it is the operand that is kept.
        if node.op.name in _MOVES and id(results[0]) in needed and id(results[0]) not in there and (
                _size(node.inputs[0]) <= _size(results[0])):
            needed.add(id(node.inputs[0]))
    # Forward order: whether a formula is cheap depends on whether its operands are there.
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


def _size(tensor: Tensor) -> int:
    return math.prod(tensor.spec.shape)


def _cheap(node: Node) -> bool:
    op = node.op
    if op.name in _MOVES:
        return True
    return isinstance(op, Elementwise) and is_cheap(op.body())

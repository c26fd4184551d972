"""One-hot operands of a batch through elementwise ops: only what is not zero is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gtape.core.spec import broadcast_shapes
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.scalar_graph import topological
from gtape.vmap.operand import Operand

#: Scalar ops by how they give zero: where any of these arguments is, or where all of them are.
_ANY = {"multiply": (0, 1), "multiply_no_nan": (0, 1), "divide": (0,), "divide_no_nan": (0,),
        "zero": (0,)}
_ALL = {"negative": (0,), "conj": (0,), "real": (0,), "imag": (0,), "complex": (0, 1),
        "add": (0, 1), "subtract": (0, 1), "where": (1, 2)}


@lru_cache(4096)
def keeps_zero(op: Elementwise, positions: tuple[int, ...]) -> bool:
    """Whether `op` gives zero wherever its inputs at `positions` are zero."""
    zero: set[int] = set()
    names = {op.params[i] for i in positions}
    body = op.body()
    for node in topological([body]):
        if node.op is None:
            if node.value in names if node.is_input else node.is_number(0):
                zero.add(id(node))
            continue
        name = node.op.name
        if any(id(node.args[i]) in zero for i in _ANY.get(name, ())) or (
                name in _ALL and all(id(node.args[i]) in zero for i in _ALL[name])):
            zero.add(id(node))
    return id(body) in zero


def elementwise_diagonal(op: Elementwise, operands: Sequence[Operand]) -> Operand | None:
    """The result as a diagonal, where all that differs from element to element is one."""
    hot = [i for i, x in enumerate(operands) if x.batched]
    first = operands[hot[0]]
    for i in hot:
        x = operands[i]
        if x.diagonal is None or x.lead != first.lead or x.shape != first.shape:
            return None
    if any(x.shape and x.shape != first.shape for x in operands) and broadcast_shapes(
            op.name, *(x.spec for x in operands)) != first.shape:
        return None
    if not keeps_zero(op, tuple(hot)):
        return None
    values = [x.tensor if x.diagonal is None else x.diagonal for x in operands]
    return Operand.onehot(op.apply(values), first.lead)

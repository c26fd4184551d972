"""One-hot operands of a batch through elementwise ops: only what is not zero is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gtape.core.spec import broadcast_shapes
from gtape.kinds.batched import Operand
from gtape.kinds.elementwise import Elementwise
from gtape.kinds.expr import topological

#: Letters by how they give zero: where any of these arguments is, or where all of them are.
_ANY = {"multiply": (0, 1), "multiply_no_nan": (0, 1), "divide": (0,), "divide_no_nan": (0,),
        "zero": (0,)}
_ALL = {"negative": (0,), "conj": (0,), "real": (0,), "imag": (0,), "complex": (0, 1),
        "add": (0, 1), "subtract": (0, 1), "where": (1, 2)}


@lru_cache(4096)
def keeps_zero(op: Elementwise, position: int) -> bool:
    """Whether `op` gives zero wherever its input at `position` is: it is linear in a cotangent.

    What it multiplies with is taken to be finite there: the zeros of a one-hot cotangent stand for
    elements that it has nothing to do with.
    """
    zero: set[int] = set()
    body = op.body()
    for node in topological([body]):
        if node.letter is None:
            if (node.is_input and node.value == op.params[position]) or node.is_number(0):
                zero.add(id(node))
            continue
        name = node.letter.name
        if any(id(node.args[i]) in zero for i in _ANY.get(name, ())) or (
                name in _ALL and all(id(node.args[i]) in zero for i in _ALL[name])):
            zero.add(id(node))
    return id(body) in zero


def elementwise_diagonal(op: Elementwise, operands: Sequence[Operand]) -> Operand | None:
    """The result as a diagonal; None where it is none."""
    at = [i for i, x in enumerate(operands) if x.batched]
    if len(at) != 1 or operands[at[0]].diagonal is None:
        return None
    hot = operands[at[0]]
    if len(operands) > 1 and broadcast_shapes(op.name, *(x.spec for x in operands)) != hot.shape:
        return None
    if not keeps_zero(op, at[0]):
        return None
    values = [x.diagonal if x is hot else x.tensor for x in operands]
    return Operand.onehot(op.apply(values), hot.lead)  # type: ignore[arg-type]

"""Batching rules of matrix products and of systems of equations.

Where one operand is the same for all elements, all of them are one product: the elements become
rows, or columns, of the other operand.
"""

from __future__ import annotations

import math
import string
from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import Tensor
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.linalg import linear, solving
from gtape.ops.linalg.contraction import einsum_
from gtape.ops.linalg.products import matmul_
from gtape.ops.nn import losses
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.layout import broadcast_to_, reshape_, swap_last, transpose_
from gtape.vmap.operand import Attrs, Operand, batches, moved
from gtape.vmap.rules.axes import Operands, run


@batches(matmul_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor | Operand:
    a, b = xs
    turned_a, turned_b = attrs["transpose_a"], attrs["transpose_b"]
    if not b.batched and len(b.shape) == 2:
        product = _rows(a, b.tensor, turned_a, turned_b)
    elif not a.batched and len(a.shape) == 2 and len(b.shape) == 2:
        product = _columns(a.tensor, b, turned_a, turned_b)
    else:
        product = None
    if product is not None:
        return product
    rank = max(len(a.shape), len(b.shape))
    return matmul_(a.aligned(rank), b.aligned(rank), transpose_a=turned_a, transpose_b=turned_b)


def _rows(a: Operand, b: Tensor, turned_a: bool, turned_b: bool) -> Tensor | Operand | None:
    """a b for every a: their rows below each other are one matrix. Axes that come first in memory
    come first in the product too."""
    columns = b.spec.shape[0 if turned_b else 1]
    *batch, rows, inner = a.shape
    if turned_a:
        if inner != 1 and rows != 1:
            return None
        rows, inner = inner, rows
    if a.diagonal is not None and math.prod(batch) * rows == math.prod(a.shape[:a.lead]) and (
            inner == a.size):
        return _scaled_rows(a, b, turned_b, (*batch, rows, columns))
    shape = (*batch, rows, inner)
    whole = a.along(a.lead) if a.shape == shape else moved(a.reshaped(shape), 0, a.lead)
    flat = reshape_(whole, shape=(a.size * math.prod(shape[:-1]), inner))
    product = matmul_(flat, b, transpose_b=turned_b)
    return Operand.of(reshape_(product, shape=(*whole.spec.shape[:-1], columns)), a.lead)


def _scaled_rows(a: Operand, b: Tensor, turned_b: bool, shape: tuple[int, ...]) -> Tensor:
    """a b where a is one-hot in its columns: row i of b, times what a holds there."""
    assert a.diagonal is not None
    b = swap_last(b) if turned_b else b
    lines = math.prod(shape[:-1])
    # A product with a one-hot matrix picks rows: nothing is multiplied by zeros and added up.
    rows = reshape_(b, shape=(a.size, 1, shape[-1]))
    if a.ones:
        scaled = rows if lines == 1 else broadcast_to_(rows, shape=(a.size, lines, shape[-1]))
    else:
        factors = transpose_(reshape_(a.diagonal, shape=(lines, a.size)), perm=(1, 0))
        scaled = multiply(rows, reshape_(factors, shape=(a.size, lines, 1)))
    return reshape_(scaled, shape=(a.size, *shape))


def _columns(a: Tensor, b: Operand, turned_a: bool, turned_b: bool) -> Tensor | None:
    """a b for every b of one column: side by side they are one matrix."""
    rows = a.spec.shape[1 if turned_a else 0]
    inner, columns = b.shape[::-1] if turned_b else b.shape
    if columns != 1 or inner == 1:
        return None
    if b.diagonal is not None and not b.lead:
        return reshape_(_scaled_rows(b, a, not turned_a, (1, rows)), shape=(b.size, rows, 1))
    flat = reshape_(b.tensor, shape=(b.size, inner))
    product = matmul_(flat, a, transpose_b=not turned_a)
    return reshape_(product, shape=(b.size, rows, 1))


@batches(einsum_)
def _(op: object, xs: Operands, attrs: Attrs) -> Any:
    terms, _, result = attrs["equation"].partition("->")
    # The axis of the elements is a letter like any other, and the contraction's order is found with
    # it.
    letter = next((x for x in string.ascii_letters if x not in terms), None)
    if letter is None:
        return None
    marked = [letter + t if x.batched else t for x, t in zip(xs, terms.split(","))]
    return einsum_(*[x.tensor for x in xs], equation=f"{','.join(marked)}->{letter}{result}")


@batches(linear.weight_gradients_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    x, dz = xs
    rows = math.prod(x.shape[:-1])
    left = x.reshaped((rows, x.shape[-1]))
    right = dz.reshaped((rows, dz.shape[-1]))
    weights = matmul_(left, right, transpose_a=True)
    if not dz.batched:
        bias = reduce_sum_(right, axis=(0,))
        return weights, broadcast_to_(bias, shape=(x.size, dz.shape[-1]))
    return weights, reduce_sum_(right, axis=(1,))


@batches(solving.solve_, solving.triangular_solve_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    a, b = xs
    if a.batched or len(a.shape) != 2 or len(b.shape) != 2:
        rank = max(len(a.shape), len(b.shape))
        return run(op, [a.aligned(rank), b.aligned(rank)], attrs)
    rows, columns = b.shape
    # One matrix for all right sides: it is factored once.
    side_by_side = reshape_(b.along(1), shape=(rows, b.size * columns))
    (solutions,) = run(op, [a.tensor, side_by_side], attrs)
    return transpose_(reshape_(solutions, shape=(rows, b.size, columns)), perm=(1, 0, 2))


@batches(losses.l2_loss_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    (t,) = xs
    if t.spec.dtype.size < 4:
        return None
    flat = t.reshaped((math.prod(t.shape),))
    return multiply(reduce_sum_(multiply(flat, flat), axis=(1,)), 0.5)

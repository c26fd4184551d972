"""Reductions: sums, means, extremes, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import Product, Value
from gtape.compile.lowering.integers import integer_mean
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES, FLOATS
from gtape.ops.reductions import reductions

Attrs = dict[str, Any]


def _plain(x: Value) -> bool:
    return x.dtype in C_TYPES and x.size > 0


def _declare(op: Op, how: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        if not _plain(x[0]):
            return None
        if how == "sum":
            # The gradient of weights that a batch shares comes as such a sum: as one product, the
            # products of single elements never are in memory.
            joined = _of_product(b, x[0], attrs["axis"], attrs["keepdims"])
            if joined is not None:
                return joined
        return b.reduced(how, x[0], attrs["axis"], attrs["keepdims"])


_declare(reductions.reduce_sum_, "sum")
_declare(reductions.reduce_max_, "max")
_declare(reductions.reduce_min_, "min")
_declare(reductions.reduce_prod_, "prod")
_declare(reductions.reduce_all_, "all")
_declare(reductions.reduce_any_, "any")


def _of_product(b: Builder, x: Value, axes: Sequence[int], keepdims: bool) -> Value | None:
    """Σ over all batch axes of a product of matrices, as one product of longer ones."""
    rank = len(x.shape)
    if not isinstance(x.node, Product) or rank < 3 or tuple(sorted(axes)) != tuple(
            range(rank - 2)):
        return None
    left, right = x.node.inputs
    if left.shape[:-2] != right.shape[:-2]:
        return None
    order = (rank - 2, *range(rank - 2), rank - 1)
    rows, inner = left.shape[-2:]
    count = math.prod(left.shape[:-2])
    a = b.reshaped(b.transposed(left, order), (rows, count * inner))
    c = b.reshaped(right, (count * inner, right.shape[-1]))
    product = b.product(a, c)
    return b.reshaped(product, (1,) * (rank - 2) + product.shape) if keepdims else product


@lowers(reductions.reduce_mean_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    """The exact mean of integers; that of floats is opened."""
    (value,), shape = x, tuple(specs[0].shape)
    if value.dtype not in C_TYPES or value.dtype in FLOATS:
        return None
    if not value.size:
        return b.splat(0, shape, value.dtype)
    return integer_mean(b, value, attrs["axis"], shape)

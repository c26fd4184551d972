"""Reductions: sums, means, extremes, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, formula, lowers
from gtape.compile.ir.nodes import Product, Value
from gtape.compile.lowering.integers import integer_mean
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.printers.cuda import C_TYPES
from gtape.ops.elementwise import scalars
from gtape.ops.reductions import more_reductions, reductions, sums
from gtape.ops.shape import layout

Attrs = dict[str, Any]
_FLOATS = ("float32", "float64", "float16", "bfloat16")


def _plain(x: Value) -> bool:
    return x.dtype in C_TYPES and x.size > 0


def _declare(op: Op, how: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        if not _plain(x[0]):
            return None
        if how == "sum":
            joined = _of_product(b, x[0], attrs["axis"], attrs["keepdims"])
            if joined is not None:
                return joined
        return b.reduced(how, x[0], attrs["axis"], attrs["keepdims"])


_declare(reductions.reduce_sum_, "sum")
_declare(reductions.reduce_max_, "max")
_declare(reductions.reduce_min_, "min")
_declare(more_reductions.reduce_prod_, "prod")
_declare(more_reductions.reduce_all_, "all")
_declare(more_reductions.reduce_any_, "any")


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
    made = b.product(a, c)
    return b.reshaped(made, (1,) * (rank - 2) + made.shape) if keepdims else made


@lowers(layout.sum_to_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), shape = x, tuple(attrs["shape"])
    if not _plain(value):
        return None
    padded = (1,) * (len(value.shape) - len(shape)) + shape
    axes = [i for i, (n, m) in enumerate(zip(value.shape, padded)) if m == 1 and n != 1]
    joined = _of_product(b, value, axes, False)
    return b.reshaped(b.reduced("sum", value, axes, True) if joined is None else joined, shape)


def mean(b: Builder, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """Σ x / n."""
    count = math.prod(x.shape[a] for a in axes)
    total = b.reduced("sum", x, axes, keepdims)
    return formula(b, "divide", lambda s: s / count, total)


@lowers(reductions.reduce_mean_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _plain(x[0]):
        return None
    if x[0].dtype not in _FLOATS:
        return integer_mean(b, x[0], attrs["axis"], tuple(specs[0].shape))
    if x[0].dtype in ("float16", "bfloat16"):  # their sum may be out of range
        wide = b.cast(x[0], "float32")
        return b.cast(mean(b, wide, attrs["axis"], attrs["keepdims"]), x[0].dtype)
    return mean(b, x[0], attrs["axis"], attrs["keepdims"])


@lowers(sums.add_n_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if any(not _plain(v) for v in x):
        return None
    total = x[0]
    for value in x[1:]:
        total = elementwise(b, scalars.add, total, value)
    return total

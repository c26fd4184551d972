"""Reductions: sums, means, extremes and their places, running totals along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gtape.compile.ir.builder import Attrs, Builder, elementwise, invoked, lowers, ready
from gtape.compile.ir.nodes import Product, Value
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.numerics.sums import SHORT
from gtape.opdef.cuda_text import C_TYPES, FLOATS
from gtape.ops.elementwise import scalars
from gtape.ops.indexing import sorting
from gtape.ops.reductions import cumulative, reductions

_SCANS = ("cpu_scans.h",)
_REAL = ("float32", "float64")


def _declare(op: Op, how: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        if not ready(x[0]):
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
    """The exact mean of integers, rounded towards zero; that of floats is opened."""
    (value,), shape = x, tuple(specs[0].shape)
    if value.dtype not in C_TYPES or value.dtype in FLOATS:
        return None
    if not value.size:
        return b.splat(0, shape, value.dtype)
    count = math.prod(value.shape[a] for a in attrs["axis"])
    wide = value.dtype if value.dtype in ("int64", "uint64") else "int64"
    parts = [value]
    if wide == value.dtype:
        # The sums of the upper and of the lower 32 bits of each number fit into 64 bits where the
        # whole sum may not.
        halves = ((scalars.right_shift, 32), (scalars.bitwise_and, 2**32 - 1))
        parts = [elementwise(b, op, value, b.splat(n, value.shape, wide)) for op, n in halves]
    sums = [b.reduced("sum", b.cast(p, wide), attrs["axis"], True) for p in parts]
    return b.call("integer mean", invoked("means", f"{math.prod(shape)}L", f"{count}L"), sums,
                  specs[0], ("cpu_integers.h",))


# ---------------------------------------------------------------- along an axis
def _sizes(shape: Sequence[int], axis: int) -> str:
    """The elements before, along and behind an axis."""
    return f"{math.prod(shape[:axis])}L, {shape[axis]}L, {math.prod(shape[axis + 1:])}L"


def _scan(op: Op, struct: str, dtypes: Sequence[str]) -> None:
    """The rule of a running total of one or two arrays."""
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        (last, shape, axis) = (x[-1], tuple(specs[0].shape), attrs["axis"])
        if any(v.dtype not in dtypes or not v.size or v.shape != last.shape for v in x):
            return None
        # As the eager op does, so that both round alike: see `numerics.sums`.
        how = f"Wide{struct}" if struct == "Sums" and shape[axis] > SHORT else struct

        def text(*pointers: str) -> str:
            source = f"{how}<{C_TYPES[last.dtype]}>{{{', '.join(pointers[:-1])}}}"
            back = "true" if attrs["reverse"] else "false"
            return f"scan({source}, {pointers[-1]}, {_sizes(shape, axis)}, {back})"

        return b.call(f"running {struct.lower()}", text, x, (shape, last.dtype), _SCANS)


_NUMBERS = tuple(d for d in C_TYPES if d != "bool")
_scan(cumulative.cumsum_, "Sums", _NUMBERS)
_scan(cumulative.cumprod_, "Products", _NUMBERS)
_scan(cumulative.cumulative_logsumexp_, "LogSums", _REAL)
_scan(cumulative.linear_scan_, "LinearSums", _REAL)


@lowers(sorting.arg_extreme_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not ready(x[0]) or specs[0].dtype.name not in C_TYPES:
        return None
    name, largest = ("argmax", "true") if attrs["largest"] else ("argmin", "false")
    text = invoked(f"extremes<{largest}>", _sizes(x[0].shape, attrs["axis"]))
    return b.call(name, text, x, specs[0], _SCANS)

"""cumsum, cumprod and cumulative_logsumexp: running totals along an axis.

An exclusive total is the inclusive one, moved by one place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32, running_type
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import Tensor
from gtape.numerics.sums import running_sum
from gtape.opdef.composite import composite
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.arguments import as_int, named, taken
from gtape.ops.elementwise.scalars import exp, maximum
from gtape.ops.indexing.getitem import WHOLE_AXIS, getitem_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.padding import pad_


@composite(tf_name="Roll")
def shift_(x: Tensor, *, axis: int, by: int, fill: float = 0.0) -> Tensor:
    """y[j] = x[j - by] along `axis`, and `fill` where there is none; `by` is 1 or -1."""
    kept = [("slice", 0, -1, None) if by == 1 else ("slice", 1, None, None)]
    new = (1, 0) if by == 1 else (0, 1)
    # An axis of length 0 has no place for the new one.
    if not x.spec.shape[axis]:
        return x
    rest = getitem_(x, key=(*[WHOLE_AXIS] * axis, *kept))
    around = [new if i == axis else (0, 0) for i in range(x.ndim)]
    return pad_(rest, paddings=tuple(around), value=fill)


shift_.vjp(x=lambda g, *, axis, by: shift_(g, axis=axis, by=-by))
shift_.cases = [case((3, 2), axis=0, by=1, fill=1.0), case((2, 3), axis=1, by=-1)]


@primitive(tf_name="LinearScan")
def linear_scan_(xp: ArrayModule, a: Array, b: Array, *, axis: int, reverse: bool = False) -> Array:
    """y[j] = b[j] + a[j] y[j - 1] along `axis` (y[j + 1] when reverse), in log₂ n steps. Pairs (a,
    b) of neighbouring stretches are joined, doubling the stretch in every step (Hillis and Steele
    1986, "Data parallel algorithms")."""
    a, b = (xp.moveaxis(v, axis, 0) for v in (a, b))
    if reverse:
        a, b = a[::-1], b[::-1]
    step = 1
    while step < b.shape[0]:
        # A product of many factors can overflow; beside 0 it must still give 0.
        carried = xp.where(b[:-step] == 0, xp.zeros((), b.dtype), a[step:] * b[:-step])
        b = xp.concatenate([b[:step], b[step:] + carried])
        a = xp.concatenate([a[:step], a[step:] * a[:-step]])
        step *= 2
    return xp.moveaxis(b[::-1] if reverse else b, 0, axis)


linear_scan_.infer(lambda a, b, **_: b)


@linear_scan_.vjp("a", "b")
def _(g: Tensor, a: Tensor, y: Tensor, *, axis: int, reverse: bool) -> tuple[Tensor, Tensor]:
    back = -1 if not reverse else 1
    # The adjoint of a recurrence is one that runs backwards, with the factors moved by one.
    total = linear_scan_(shift_(a, axis=axis, by=back), g, axis=axis, reverse=not reverse)
    return total * shift_(y, axis=axis, by=-back), total


linear_scan_.cases = [case((5, 2), (5, 2), axis=0), case((2, 4), (2, 4), axis=1, reverse=True)]


def _running(xp: ArrayModule, function: Any, x: Array, axis: int, reverse: bool) -> Array:
    # Two-byte floats are summed in float32, as by every sum.
    wide = x.astype(running_type(x.dtype), copy=False)
    # A flipped view on either side: ufuncs accumulate from the front alone.
    if reverse:
        return xp.flip(function(xp.flip(wide, axis), axis), axis).astype(x.dtype, copy=False)
    return function(wide, axis).astype(x.dtype, copy=False)


def _number(name: str, x: Spec) -> Spec:
    return taken(name, "numbers", x, ". Write tf.cast(x, tf.int32)")


@primitive(linear="x", tf_name="Cumsum")
def cumsum_(xp: ArrayModule, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """y[j] = Σ x[k] over k <= j along `axis` (k >= j when reverse)."""
    function = running_sum if xp is np else partial(xp.cumsum, dtype=running_type(x.dtype))
    return _running(xp, function, x, axis, reverse)


cumsum_.infer(lambda x, **_: _number("cumsum", x))
cumsum_.on_cuda("kernels.cumulative.cumulative", operation="sum")
cumsum_.vjp(x=lambda g, *, axis, reverse: cumsum_(g, axis=axis, reverse=not reverse))


_CASES = [case((4, 2), axis=0), case((2, 5), axis=1, reverse=True), case((0, 2), axis=0)]
cumsum_.cases = _CASES


@primitive(tf_name="Cumprod")
def cumprod_(xp: ArrayModule, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """y[j] = Π x[k] over k <= j along `axis` (k >= j when reverse)."""
    return _running(xp, partial(xp.cumprod, dtype=running_type(x.dtype)), x, axis, reverse)


cumprod_.infer(lambda x, **_: _number("cumprod", x))
cumprod_.on_cuda("kernels.cumulative.cumulative", operation="product")


@cumprod_.vjp("x")
def _(g: Tensor, x: Tensor, y: Tensor, *, axis: int, reverse: bool) -> Tensor:
    # dx[j] = y[j - 1] s[j] with s[j] = g[j] + x[j + 1] s[j + 1]: no division, so zeros are exact.
    ahead = 1 if reverse else -1
    sums = linear_scan_(shift_(x, axis=axis, by=ahead), g, axis=axis, reverse=not reverse)
    return shift_(y, axis=axis, by=-ahead, fill=1.0) * sums


cumprod_.cases = _CASES


@primitive(tf_name="CumulativeLogsumexp")
def cumulative_logsumexp_(xp: ArrayModule, x: Array, *, axis: int, reverse: bool = False) -> Array:
    """y[j] = log Σ exp x[k] over k <= j along `axis` (k >= j when reverse)."""
    moved = xp.moveaxis(x.astype(running_type(x.dtype), copy=False), axis, 0)
    moved = moved[::-1] if reverse else moved
    if xp is np:
        # Pairwise with the maximum taken out: a running sum of exponentials would overflow.
        y = np.logaddexp.accumulate(moved, axis=0)
    else:
        y, step = moved, 1
        while step < y.shape[0]:
            y = xp.concatenate([y[:step], xp.logaddexp(y[step:], y[:-step])])
            step *= 2
    return xp.moveaxis(y[::-1] if reverse else y, 0, axis).astype(x.dtype, copy=False)


cumulative_logsumexp_.infer(
    lambda x, **_: taken("cumulative_logsumexp", "real floating tensors", x))
cumulative_logsumexp_.on_cuda("kernels.cumulative.cumulative", operation="logsumexp")


@cumulative_logsumexp_.vjp("x")
def _(g: Tensor, x: Any, y: Any, *, axis: int, reverse: bool) -> Any:
    # dx[j] = exp(x[j] - y[j]) t[j] with t[j] = g[j] + exp(y[j] - y[j + 1]) t[j + 1]: every
    # exponent is <= 0, so nothing overflows.
    dtype, ahead = x.dtype, 1 if reverse else -1
    if dtype.size == 2:  # as sums of them
        g, x, y = cast(g, float32), cast(x, float32), cast(y, float32)
    # -inf - -inf is nan: totals of nothing become the lowest number, whose exponential is 0.
    finite = maximum(y, float(np.finfo(y.dtype.np_dtype).min))
    weight = exp(finite - shift_(finite, axis=axis, by=ahead, fill=np.inf))
    return cast(exp(x - finite) * linear_scan_(weight, g, axis=axis, reverse=not reverse), dtype)


cumulative_logsumexp_.cases = _CASES


def _cumulative(op: Primitive, start: float, formula: str, refuses: str) -> Callable[..., Any]:
    """The public function of `op`, whose total of nothing is `start`."""
    public = op.name.rstrip("_")

    def function(x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
                 name: str | None = None) -> Tensor:
        tensor = convert(x)
        if not tensor.ndim:
            raise InvalidArgumentError(f"{public}: a scalar has no axis to run along; got "
                                       f"{tensor.spec}")
        (at,) = normal_axes(public, as_int(axis, f"{public}: axis"), tensor.ndim)
        y = op(tensor, axis=at, reverse=bool(reverse))
        return shift_(y, axis=at, by=-1 if reverse else 1, fill=start) if exclusive else y

    return named(function, public, f"""{formula}

    Args:
        exclusive: over k < j, so that y begins with {start:g}.
        reverse: from the end: k >= j, or k > j.

    Raises:
        InvalidArgumentError: a scalar, no such axis, or {refuses}.
    """)


cumsum = _cumulative(cumsum_, 0.0, "y[j] = Σ x[k] over k <= j along `axis`.", "bools")
cumprod = _cumulative(cumprod_, 1.0, "y[j] = Π x[k] over k <= j along `axis`; the gradient is "
                                     "exact where x is 0.", "bools")
cumulative_logsumexp = _cumulative(
    cumulative_logsumexp_, -np.inf, "y[j] = log Σ exp x[k] over k <= j along `axis`, without "
                                    "overflow.", "not real floating numbers")

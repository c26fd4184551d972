"""Sums, means, extremes and products over axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes, reduced
from gtape.core.tensor import Tensor
from gtape.numerics.integer_means import integer_mean
from gtape.numerics.sums import total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import axes_of
from gtape.ops.shape.layout import broadcast_to_, reshape_

Axes = tuple[int, ...]


def prepared(name: str, value: Any, axis: Any) -> tuple[Tensor, Axes]:
    """The input as a tensor and its axes as distinct non-negative numbers."""
    x = value if isinstance(value, Tensor) else convert(
        value.to_dense() if hasattr(value, "to_dense") else value)
    return x, normal_axes(name, axes_of(axis), x.ndim)


def kept_shape(x: Spec, axis: Axes) -> tuple[int, ...]:
    """The shape of the reduction with its axes kept as length 1."""
    return reduced(x.shape, axis, True)


def number_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    """The result's spec. Raises InvalidArgumentError for bools and strings."""
    if not (x.dtype.is_differentiable or x.dtype.is_integer):
        raise InvalidArgumentError(f"{name} takes numbers; got {x}. "
                                   f"Write tf.cast(x, tf.int32) first")
    return Spec(reduced(x.shape, axis, keepdims), x.dtype)


@primitive(linear="x", tf_name="Sum")
def reduce_sum_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Σ x over `axis`."""
    return total(x, axis, keepdims)


reduce_sum_.on_cuda("kernels.reductions.reduce", operation="Sum")


@reduce_sum_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return number_spec("reduce_sum", x, axis, keepdims)


@reduce_sum_.vjp("x")
def _(g: Any, x: Spec, *, axis: Axes) -> Any:
    return broadcast_in_dim_(g, shape=x.shape, axis=axis)


@primitive(linear="x", tf_name="BroadcastTo")
def broadcast_in_dim_(xp: Any, x: Any, *, shape: tuple[int, ...], axis: Axes) -> Any:
    """x repeated along the axes that a sum over `axis` took away: the sum's adjoint."""
    kept = x.reshape([1 if i in axis else n for i, n in enumerate(shape)])
    return broadcast_to_.value(xp, kept, shape=shape)


@broadcast_in_dim_.infer
def _(x: Spec, *, shape: tuple[int, ...], axis: Axes) -> Spec:
    return x.reshaped(shape)


@broadcast_in_dim_.vjp("x")
def _(g: Any, x: Spec, *, axis: Axes) -> Any:
    return reshape_(reduce_sum_(g, axis=axis, keepdims=True), shape=x.shape)


broadcast_in_dim_.cases = [case((2, 1), shape=(2, 3), axis=(1,)),
                           case((3,), shape=(2, 3, 4), axis=(0, 2))]


_CASES = [case((2, 3, 4), axis=(0, 2)), case((3, 4), axis=(1,), keepdims=True), case((3,), axis=())]
reduce_sum_.cases = _CASES


@takes_composites
def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """Σ x over `axis` (all axes when None; none when []).

    Raises:
        InvalidArgumentError: no such axis, or bools.
    """
    x, axes = prepared("reduce_sum", input_tensor, axis)
    return reduce_sum_(x, axis=axes, keepdims=bool(keepdims))


def count_of(x: Spec, axis: Axes) -> int:
    return math.prod(x.shape[a] for a in axis)


@primitive(linear="x", tf_name="Mean")
def reduce_mean_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Σ x / n over `axis`; for integers exactly that, rounded towards zero."""
    if x.dtype.kind in "iu":
        return integer_mean(xp, x, axis, keepdims)
    count = math.prod(x.shape[a] for a in axis)
    if x.dtype.itemsize == 2:  # their sum may be out of range
        wide = total(x.astype(np.float32), axis, keepdims)
        return xp.asarray(wide / (count or np.nan)).astype(x.dtype)
    return total(x, axis, keepdims) / (count or np.nan)


reduce_mean_.on_cuda("kernels.reductions.mean")


@reduce_mean_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return number_spec("reduce_mean", x, axis, keepdims)


@reduce_mean_.vjp("x")
def _(g: Any, x: Spec, *, axis: Axes) -> Any:
    return broadcast_in_dim_(g / max(count_of(x, axis), 1), shape=x.shape, axis=axis)


reduce_mean_.cases = _CASES


@takes_composites
def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                name: str | None = None) -> Tensor:
    """The mean over `axis`; nan for no elements. That of integers is exact, rounded towards zero,
    and 0 for none.

    Raises:
        InvalidArgumentError: no such axis, or bools.
    """
    x, axes = prepared("reduce_mean", input_tensor, axis)
    return reduce_mean_(x, axis=axes, keepdims=bool(keepdims))


def _extreme_grad(g: Any, x: Any, y: Any, axis: Axes) -> Any:
    """Ties share the gradient equally."""
    from gtape.ops.elementwise.scalars import equal
    from gtape.ops.shape.casting import cast_

    kept = kept_shape(x.spec, axis)
    hit = cast_(equal(x, reshape_(y, shape=kept)), dtype=x.dtype)
    shared = hit / reduce_sum_(hit, axis=axis, keepdims=True)
    return shared * reshape_(g, shape=kept)


def extreme(function: Any, xp: Any, x: Any, axis: Axes, keepdims: bool, empty: Any) -> Any:
    """`xp.max` or `xp.min`, and `empty` for no elements; CuPy's take no initial value."""
    if any(x.shape[a] == 0 for a in axis):
        return xp.full(reduced(x.shape, axis, keepdims), empty, dtype=x.dtype)
    return function(x, axis=axis, keepdims=keepdims)


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _highest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def _real_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise InvalidArgumentError(f"{name} takes real numbers; got {x}")
    return Spec(reduced(x.shape, axis, keepdims), x.dtype)


@primitive(tf_name="Max")
def reduce_max_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = max x over `axis`."""
    return extreme(xp.max, xp, x, axis, keepdims, _lowest(x.dtype))


reduce_max_.on_cuda("kernels.reductions.reduce", operation="Max")


@reduce_max_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return _real_spec("reduce_max", x, axis, keepdims)


@reduce_max_.vjp("x")
def _(g: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    return _extreme_grad(g, x, y, axis)


reduce_max_.cases = _CASES


@takes_composites
def reduce_max(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """The largest element over `axis`; ties share the gradient equally; -inf for no elements.

    Raises:
        InvalidArgumentError: no such axis, or not real numbers.
    """
    x, axes = prepared("reduce_max", input_tensor, axis)
    return reduce_max_(x, axis=axes, keepdims=bool(keepdims))


@primitive(tf_name="Min")
def reduce_min_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = min x over `axis`."""
    return extreme(xp.min, xp, x, axis, keepdims, _highest(x.dtype))


reduce_min_.on_cuda("kernels.reductions.reduce", operation="Min")


@reduce_min_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return _real_spec("reduce_min", x, axis, keepdims)


@reduce_min_.vjp("x")
def _(g: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    return _extreme_grad(g, x, y, axis)


reduce_min_.cases = _CASES


@takes_composites
def reduce_min(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """The smallest element over `axis`; ties share the gradient equally; inf for no elements.

    Raises:
        InvalidArgumentError: no such axis, or not real numbers.
    """
    x, axes = prepared("reduce_min", input_tensor, axis)
    return reduce_min_(x, axis=axes, keepdims=bool(keepdims))

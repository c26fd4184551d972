"""Means and variances over axes, and the sums they are made of."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor, takes_composites
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes, normal_axes, reduced
from gtape.core.tensor import Tensor
from gtape.numerics.sums import total
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import axes_of, taken
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.operators import squared_length
from gtape.ops.reductions.reductions import (
    CASES,
    Axes,
    count_of,
    kept_shape,
    reduce_mean_,
    reduce_sum_,
    reduction,
)
from gtape.ops.shape.casting import cast, cast_
from gtape.ops.shape.layout import broadcast_to_, reshape_


@primitive(tf_name="Variance", holomorphic=False)
def reduce_variance_(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
    """y = Σ |x - mean|² / n over `axis`, real."""
    count = math.prod(x.shape[a] for a in axis)
    wide = x.astype(dtypes.running_type(x.dtype), copy=False)
    # Two passes: Σ x² / n - mean² loses all digits where the mean is large beside the spread.
    centred = wide - total(wide, axis, True) / (count or np.nan)
    squares = (centred * xp.conj(centred)).real
    y = total(squares, axis, keepdims)
    return xp.asarray(y / (count or np.nan)).astype(x.real.dtype)


reduce_variance_.on_cuda("kernels.reductions.variance")


@reduce_variance_.defined
def _(x: object, *, axis: Axes, keepdims: bool) -> Any:
    centred = s.subtract(x, reduce_mean_(x, axis=axis, keepdims=True))  # two passes here too
    squares = squared_length(centred)
    return reduce_mean_(squares, axis=axis, keepdims=keepdims)


@reduce_variance_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    taken("reduce_variance", "floating or complex tensors", x, ". Write tf.cast(x, tf.float32)")
    return Spec(reduced(x.shape, axis, keepdims), x.dtype.real_dtype)


@reduce_variance_.vjp("x")
def _(g: Tensor, x: Any, *, axis: Axes) -> Any:
    # Of no elements there is no gradient: 0 must not divide.
    factor = 2.0 / max(count_of(x.spec, axis), 1)
    spread = reshape_(g, shape=kept_shape(x.spec, axis)) * factor
    if x.dtype.is_complex:
        spread = cast_(spread, dtype=x.dtype)
    return spread * (x - reduce_mean_(x, axis=axis, keepdims=True))


reduce_variance_.cases = CASES
reduce_variance = reduction(reduce_variance_, refuses="integers",
                            doc="The population variance Σ |x - mean|² / n over `axis`; nan for no "
                                "elements.")


@takes_composites
def reduce_std(input_tensor: TensorLike | CompositeTensor, axis: IntsLike | None = None,
               keepdims: bool = False, name: str | None = None) -> Tensor:
    """The population standard deviation over `axis`; its gradient is 0 where it is 0.

    Raises:
        InvalidArgumentError: no such axis, or integers.
    """
    return s.root(reduce_variance(input_tensor, axis, keepdims))


def _prepared(name: str, x: TensorLike, axes: Any) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """The input, the input in a dtype wide enough to sum, and its axes."""
    given = convert(x)
    # Sums of float16 pass its largest number, 65504, soon; those of bfloat16 keep 8 bits.
    wide = cast(given, dtypes.float32) if given.dtype.size == 2 else given
    return given, wide, normal_axes(name, axes_of(axes), given.ndim)


@composite
def variance_about(x: TensorLike, mean: TensorLike, *, axis: tuple[int, ...]) -> Tensor:
    """Σ (x - mean)² / n over `axis`, which is kept, where `mean` is the mean over it."""
    return reduce_mean_(s.squared_difference(x, mean), axis=axis, keepdims=True)


# By the mean the derivative is 0: Σ (x - mean) is. It stands in this formula for orders above.
variance_about.vjp(x=lambda g, x, mean, *, axis:
                   s.multiply(s.multiply(g, 2.0 / max(count_of(x.spec, axis), 1)),
                              s.subtract(x, mean)))
variance_about.cases = [case([[1.0, 3.0], [2.0, 6.0], [-1.0, 0.5]], [[2.0], [4.0], [-0.25]],
                             axis=(1,))]


def _without(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """`x` without axes, of length 1."""
    return reshape_(x, shape=tuple(n for i, n in enumerate(x.spec.shape) if i not in axes))


def moments(x: Any, axes: Any, shift: object = None, keepdims: bool = False,
            name: str | None = None) -> tuple[Tensor, Tensor]:
    """The mean and the variance Σ |x - mean|² / n of x over `axes`. `shift` has no effect.

    16-bit floats are summed in float32; the variance of complex numbers is complex too. The
    gradients of all orders are those of this formula, in which the mean depends on x.

    Raises:
        InvalidArgumentError: no such axis.
    """
    given, wide, over = _prepared("moments", x, axes)
    mean = reduce_mean_(wide, axis=over, keepdims=True)
    if wide.dtype.is_complex:
        variance = cast(reduce_variance_(wide, axis=over, keepdims=True), wide.dtype)
    else:
        variance = variance_about(wide, mean, axis=over)
    if not keepdims:
        mean, variance = _without(mean, over), _without(variance, over)
    return cast(mean, given.dtype), cast(variance, given.dtype)


def weighted_moments(x: TensorLike, axes: IntsLike, frequency_weights: TensorLike,
                     keepdims: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The mean and the variance of x over `axes`, each value counted by its weight.

    Raises:
        InvalidArgumentError: no such axis, or weights that do not broadcast with x.
    """
    given, wide, over = _prepared("weighted_moments", x, axes)
    weights = convert_like(cast(frequency_weights, wide.dtype), wide._t, "weighted_moments")
    shape = broadcast_shapes("weighted_moments", wide.spec, weights.spec)
    spread = weights if weights.spec.shape == shape else broadcast_to_(weights, shape=shape)
    # Weights that add up to 0 give 0 below, and not nan.
    total = reduce_sum_(spread, axis=over, keepdims=True)
    mean = s.divide_no_nan(reduce_sum_(s.multiply(spread, wide), axis=over, keepdims=True), total)
    spreads = s.multiply(spread, s.squared_difference(wide, mean))
    variance = s.divide_no_nan(reduce_sum_(spreads, axis=over, keepdims=True), total)
    if not keepdims:
        mean, variance = _without(mean, over), _without(variance, over)
    return cast(mean, given.dtype), cast(variance, given.dtype)


def sufficient_statistics(x: TensorLike, axes: IntsLike, shift: SupportsFloat | None = None,
                          keepdims: bool = False, name: str | None = None,
                          ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The count, Σ (x - shift) and Σ (x - shift)² over `axes`, and the shift.

    Raises:
        InvalidArgumentError: no such axis.
    """
    tensor = convert(x)
    over = normal_axes("sufficient_statistics", axes_of(axes), tensor.ndim)
    # A float: TensorFlow gives the count in x's dtype.
    count = convert(float(math.prod(tensor.spec.shape[a] for a in over)), tensor.dtype,
                    tensor._t.device)
    centred = tensor
    if shift is not None:
        shift = convert_like(shift, tensor._t, "sufficient_statistics")
        centred = s.subtract(tensor, shift)
    total = reduce_sum_(centred, axis=over, keepdims=bool(keepdims))
    return count, total, reduce_sum_(s.square(centred), axis=over, keepdims=bool(keepdims)), shift


def normalize_moments(counts: TensorLike, mean_ss: TensorLike, variance_ss: TensorLike,
                      shift: TensorLike | None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The mean and the variance from what `sufficient_statistics` gives."""
    total = convert(counts)
    shifted_mean = s.multiply(mean_ss, 1 / total)  # TensorFlow's way: by the reciprocal
    mean = shifted_mean if shift is None else s.add(shifted_mean, shift)
    variance = s.subtract(s.multiply(variance_ss, 1 / total),
                        s.square(shifted_mean))
    return mean, variance

"""Means and variances over axes, and the sums they are made of."""

from __future__ import annotations

import math
from typing import Any

from gtape.core import dtypes
from gtape.core.convert import convert, convert_like
from gtape.core.op import case
from gtape.core.spec import broadcast_shapes, normal_axes
from gtape.core.tensor import Tensor
from gtape.opdef.composite import composite
from gtape.ops.arguments import axes_of
from gtape.ops.elementwise.scalars import (
    add,
    divide_no_nan,
    multiply,
    square,
    squared_difference,
    subtract,
)
from gtape.ops.reductions.more_reductions import reduce_variance_
from gtape.ops.reductions.reductions import count_of, reduce_mean_, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import broadcast_to_, reshape_


def _prepared(name: str, x: Any, axes: Any) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """The input, the input in a dtype wide enough to sum, and its axes."""
    given = convert(x)
    wide = cast(given, dtypes.float32) if given.dtype.size == 2 else given
    return given, wide, normal_axes(name, axes_of(axes), given.ndim)


@composite
def variance_about(x: Any, mean: Any, *, axis: tuple[int, ...]) -> Any:
    """Σ (x - mean)² / n over `axis`, which is kept, where `mean` is the mean over it."""
    return reduce_mean_(squared_difference(x, mean), axis=axis, keepdims=True)


@variance_about.vjp("x")
def _(g: Any, x: Any, mean: Any, *, axis: tuple[int, ...]) -> Any:
    # By the mean the derivative is 0: Σ (x - mean) is. It stands in this formula for orders above.
    return multiply(multiply(g, 2.0 / max(count_of(x.spec, axis), 1)), subtract(x, mean))


variance_about.cases = [case([[1.0, 3.0], [2.0, 6.0], [-1.0, 0.5]], [[2.0], [4.0], [-0.25]],
                             axis=(1,))]


def _without(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """`x` without axes, of length 1."""
    return reshape_(x, shape=tuple(n for i, n in enumerate(x.spec.shape) if i not in axes))


def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False,
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


def weighted_moments(x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False,
                     name: str | None = None) -> tuple[Tensor, Tensor]:
    """The mean and the variance of x over `axes`, each value counted by its weight.

    Raises:
        InvalidArgumentError: no such axis, or weights that do not broadcast with x.
    """
    given, wide, over = _prepared("weighted_moments", x, axes)
    weights = convert_like(cast(frequency_weights, wide.dtype), wide._t, "weighted_moments")
    shape = broadcast_shapes("weighted_moments", wide.spec, weights.spec)
    spread = weights if weights.spec.shape == shape else broadcast_to_(weights, shape=shape)
    total = reduce_sum_(spread, axis=over, keepdims=True)
    mean = divide_no_nan(reduce_sum_(multiply(spread, wide), axis=over, keepdims=True), total)
    spreads = multiply(spread, squared_difference(wide, mean))
    variance = divide_no_nan(reduce_sum_(spreads, axis=over, keepdims=True), total)
    if not keepdims:
        mean, variance = _without(mean, over), _without(variance, over)
    return cast(mean, given.dtype), cast(variance, given.dtype)


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keepdims: bool = False,
                          name: str | None = None,
                          ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The count, Σ (x - shift) and Σ (x - shift)² over `axes`, and the shift.

    Raises:
        InvalidArgumentError: no such axis.
    """
    found = convert(x)
    over = normal_axes("sufficient_statistics", axes_of(axes), found.ndim)
    count = convert(float(math.prod(found.spec.shape[a] for a in over)), found.dtype,
                    found._t.device)
    centred = found
    if shift is not None:
        shift = convert_like(shift, found._t, "sufficient_statistics")
        centred = subtract(found, shift)
    total = reduce_sum_(centred, axis=over, keepdims=bool(keepdims))
    return count, total, reduce_sum_(square(centred), axis=over, keepdims=bool(keepdims)), shift


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any,
                      name: str | None = None) -> tuple[Tensor, Tensor]:
    """The mean and the variance from what `sufficient_statistics` gives."""
    total = convert(counts)
    shifted_mean = multiply(mean_ss, 1 / total)  # type: ignore[operator]
    mean = shifted_mean if shift is None else add(shifted_mean, shift)
    variance = subtract(multiply(variance_ss, 1 / total),  # type: ignore[operator]
                        square(shifted_mean))
    return mean, variance

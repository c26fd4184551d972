"""Normalization: batch, layer, root mean square, and local response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Dims, Spec
from gtape.core.tensor import Tensor
from gtape.numerics.sums import total
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.scalars import add, multiply, power, rsqrt, square, subtract
from gtape.ops.reductions.reductions import reduce_mean_, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape, sum_to
from gtape.ops.shape.packing import stack
from gtape.ops.shape.padding import pad

Axes = tuple[int, ...]


def batch_normalization(x: TensorLike, mean: TensorLike, variance: TensorLike,
                        offset: TensorLike | None, scale: TensorLike | None,
                        variance_epsilon: float, name: str | None = None) -> Tensor:
    """(x - mean) / √(variance + ε) · scale + offset; offset and scale may be None.

    Ioffe & Szegedy 2015, arXiv:1502.03167.

    Raises InvalidArgumentError: shapes or dtypes that do not combine."""
    given = convert(x)
    name = "batch_normalization"
    parts = (mean, variance, offset, scale)
    # One launch; epsilon is an attribute of the op, and cannot be a tensor.
    if given._t.device.executor is not None and type(variance_epsilon) is float and (
            offset is not None and scale is not None):
        return batch_norm_(given, *(convert_like(p, given._t, name) for p in parts),
                           eps=variance_epsilon)
    return _batch_normalized(given, *parts, variance_epsilon)


def _batch_normalized(given: Tensor, mean: TensorLike, variance: TensorLike,
                      offset: TensorLike | None, scale: TensorLike | None, variance_epsilon: float,
                      ) -> Tensor:
    name = "batch_normalization"
    # x factor + shift: the large tensor is multiplied once and added to once.
    factor = rsqrt(add(convert_like(variance, given._t, name), variance_epsilon))
    if scale is not None:
        factor = multiply(factor, scale)
    shift = multiply(convert_like(mean, given._t, name), factor)
    shift = -shift if offset is None else subtract(convert_like(offset, given._t, name), shift)
    return add(multiply(given, factor), shift)


@composite
def batch_norm_(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, *, eps: float) -> Any:
    """(x - mean) / √(variance + ε) · scale + offset."""
    return _batch_normalized(x, mean, variance, offset, scale, eps)


batch_norm_.on_cuda("kernels.normalization.batch_norm")


def batch_norm_with_global_normalization(
        input: TensorLike, mean: TensorLike, variance: TensorLike, beta: TensorLike,
        gamma: TensorLike, variance_epsilon: float, scale_after_normalization: bool,
        name: str | None = None) -> Tensor:
    """`batch_normalization` with offset beta, and with scale gamma only where asked."""
    return batch_normalization(input, mean, variance, beta,
                               gamma if scale_after_normalization else None, variance_epsilon)


@primitive(linear="a")
def normal_grad_(xp: ArrayModule, a: Array, normal: Array, factor: object, *, axes: Axes) -> Array:
    """The cotangent of x where normal = (x - mean) · factor, for the cotangent a of normal.

    factor (a - mean a - normal · mean(a normal)), with means over `axes`; self-adjoint in a.
    """
    # 1 for no elements: 0 / 0 would warn, and there is nothing to write it to.
    count = max(math.prod(a.shape[i] for i in axes), 1)
    along = total(a * normal, axes, True) / count
    y = normal * along
    # In place: three passes over memory that is in the cache already.
    xp.subtract(a, y, out=y)
    y -= total(a, axes, True) / count
    y *= factor
    return y


@normal_grad_.defined
def _(a: Tensor, normal: Tensor, factor: Tensor, *, axes: Axes) -> Tensor:
    along = reduce_mean_(multiply(a, normal), axis=axes, keepdims=True)
    centred = subtract(subtract(a, multiply(normal, along)),
                       reduce_mean_(a, axis=axes, keepdims=True))
    return multiply(centred, factor)


normal_grad_.infer(lambda a, normal, factor, **_: a)
normal_grad_.vjp(a=lambda g, normal, factor, *, axes: normal_grad_(g, normal, factor, axes=axes))


@normal_grad_.vjp("normal")
def _(g: Tensor, a: Tensor, normal: Tensor, factor: Tensor, *, axes: Axes) -> Tensor:
    scaled = multiply(g, factor)
    of_a, of_g = (reduce_mean_(multiply(v, normal), axis=axes, keepdims=True) for v in (a, scaled))
    return -add(multiply(scaled, of_a), multiply(a, of_g))


@normal_grad_.vjp("factor")
def _(g: Tensor, a: Tensor, normal: Tensor, factor_spec: Spec, *, axes: Axes) -> Tensor:
    along = reduce_mean_(multiply(a, normal), axis=axes, keepdims=True)
    centred = subtract(a, reduce_mean_(a, axis=axes, keepdims=True))
    return sum_to(multiply(g, subtract(centred, multiply(normal, along))), factor_spec.shape)


normal_grad_.cases = [case((4, 3), (4, 3), (4, 1), axes=(1,))]


def along(x: Tensor, axis: int | Sequence[int], parameters: Sequence[object],
          ) -> tuple[Any, Axes, list[Any]]:
    """What normalises x along axes by vectors of their lengths: x in the wider dtype of both, the
    axes from 0, and the vectors in shapes that broadcast with x."""
    given = [convert(p) for p in parameters]
    # Keras keeps parameters in float32 under mixed precision.
    dtype = max([x.dtype, given[0].dtype], key=lambda d: d.size)
    axes = tuple(sorted(i % x.ndim for i in ([axis] if isinstance(axis, int) else axis)))
    shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
    return cast(x, dtype), axes, [reshape(cast(p, dtype), shape) for p in given]


def _wide(x: Tensor) -> Any:
    """Statistics of two-byte floats as float32, in which kernels give them."""
    # The host's must have the kernels' dtype, or a trace on one would not fit the other.
    return cast(x, dtypes.float32) if x.dtype.size == 2 else x


@composite(saves="mean variance")
def batch_norm_training(x: TensorLike, scale: TensorLike, shift: TensorLike, *, axes: Axes,
                        eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - μ) / √(σ² + ε) · scale + shift with μ and σ² of x over `axes`.

    Ioffe & Szegedy 2015, arXiv:1502.03167. scale and shift broadcast with x. `run` gives the mean
    and the variance too, with their axes kept, in float32 for two-byte floats.
    """
    # Twice over x: the mean of squares less the square of the mean loses all digits where the
    # mean is large.
    mean = reduce_mean_(x, axis=axes, keepdims=True)
    centred = subtract(x, mean)
    variance = reduce_mean_(square(centred), axis=axes, keepdims=True)
    factor = multiply(rsqrt(add(variance, eps)), scale)
    # The backward reads mean and variance, two numbers a channel, and computes the rest again.
    return add(multiply(centred, factor), shift), _wide(mean), _wide(variance)


batch_norm_training.on_cuda("kernels.normalization.batch_norm_training")


@batch_norm_training.vjp("x", "scale", "shift")
def _(g: Tensor, x: Tensor, scale: Tensor, shift_spec: Spec, mean: Tensor, variance: Tensor, *,
      axes: Axes, eps: float) -> tuple[Tensor, ...]:
    return batch_norm_grad_.results(g, x, scale, mean, variance, axes=axes, eps=eps,
                                    shift_shape=shift_spec.shape)


@composite(saves="d_scale d_shift")
def batch_norm_grad_(g: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, *,
                     axes: Axes, eps: float, shift_shape: Dims) -> tuple[Tensor, Tensor, Tensor]:
    """The cotangents of x, scale and shift of `batch_norm_training`."""
    factor = rsqrt(add(cast(variance, x.dtype), eps))
    return _cotangents(g, x, scale, mean, factor, axes, shift_shape)


def _cotangents(g: Tensor, x: Tensor, scale: Tensor, mean: Tensor, factor: Tensor, axes: Axes,
                shift_shape: Dims) -> tuple[Tensor, Tensor, Tensor]:
    normal = multiply(subtract(x, cast(mean, x.dtype)), factor)
    d_x = normal_grad_(multiply(g, scale), normal, factor, axes=axes)
    return d_x, sum_to(multiply(g, normal), scale.spec.shape), sum_to(g, shift_shape)


batch_norm_grad_.on_cuda("kernels.normalization.batch_norm_grad")


@composite(saves="mean factor")
def layer_norm(x: TensorLike, scale: TensorLike, shift: TensorLike, *, axes: Axes, eps: float,
               ) -> tuple[Tensor, ...]:
    """(x - μ) / √(σ² + ε) · scale + shift with μ and σ² of each example over `axes`.

    Ba, Kiros & Hinton 2016, arXiv:1607.06450. scale and shift broadcast with x.
    """
    mean = reduce_mean_(x, axis=axes, keepdims=True)
    centred = subtract(x, mean)
    factor = rsqrt(add(reduce_mean_(square(centred), axis=axes, keepdims=True), eps))
    return (add(multiply(multiply(centred, factor), scale), shift), _wide(mean), _wide(factor))


layer_norm.on_cuda("kernels.normalization.layer_norm")


@layer_norm.vjp("x", "scale", "shift")
def _(g: Tensor, x: Tensor, scale: Tensor, shift_spec: Spec, mean: Tensor, factor: Tensor, *,
      axes: Axes) -> tuple[Tensor, ...]:
    return layer_norm_grad_.results(g, x, scale, mean, factor, axes=axes,
                                    shift_shape=shift_spec.shape)


@composite(saves="d_scale d_shift")
def layer_norm_grad_(g: Tensor, x: Tensor, scale: Tensor, mean: Tensor, factor: Tensor, *,
                     axes: Axes, shift_shape: Dims) -> tuple[Tensor, ...]:
    """The cotangents of x, scale and shift of `layer_norm`."""
    return _cotangents(g, x, scale, mean, cast(factor, x.dtype), axes, shift_shape)


layer_norm_grad_.on_cuda("kernels.normalization.layer_norm_grad")


@composite(saves="factor")
def rms_norm(x: TensorLike, scale: TensorLike, *, axes: Axes, eps: float) -> tuple[Tensor, ...]:
    """x / √(mean x² + ε) · scale over `axes`. Zhang & Sennrich 2019, arXiv:1910.07467."""
    factor = rsqrt(add(reduce_mean_(square(x), axis=axes, keepdims=True), eps))
    return multiply(multiply(x, factor), scale), _wide(factor)


rms_norm.on_cuda("kernels.normalization.rms_norm")


@rms_norm.vjp("x", "scale")
def _(g: Tensor, x: Tensor, scale: Tensor, factor: Tensor, *, axes: Axes) -> tuple[Tensor, ...]:
    return rms_norm_grad_.results(g, x, scale, factor, axes=axes)


@composite(saves="d_scale")
def rms_norm_grad_(g: Tensor, x: Tensor, scale: Tensor, factor: Tensor, *, axes: Axes,
                   ) -> tuple[Tensor, ...]:
    """The cotangents of x and scale of `rms_norm`."""
    factor = cast(factor, x.dtype)
    normal = multiply(x, factor)
    g_normal = multiply(g, scale)
    along = reduce_mean_(multiply(g_normal, normal), axis=axes, keepdims=True)
    d_x = multiply(factor, subtract(g_normal, multiply(normal, along)))
    return d_x, sum_to(multiply(g, normal), scale.spec.shape)


rms_norm_grad_.on_cuda("kernels.normalization.rms_norm_grad")


batch_norm_.cases = [case((4, 3), (3,), (3,), (3,), (3,), domain=(0.5, 2.0), eps=1e-3)]
batch_norm_grad_.cases = [case((4, 3), (4, 3), (3,), (1, 3), (1, 3), domain=(0.5, 2.0), axes=(0,),
                               eps=1e-3, shift_shape=(3,))]
layer_norm_grad_.cases = [case((4, 3), (4, 3), (3,), (4, 1), (4, 1), axes=(1,), shift_shape=(3,))]
rms_norm_grad_.cases = [case((4, 3), (4, 3), (3,), (4, 1), axes=(1,))]
batch_norm_training.cases = [case((4, 3), (3,), (3,), axes=(0,), eps=1e-3),
                             case((2, 3, 4), (3, 1), (3, 1), axes=(0, 2), eps=1e-3)]
layer_norm.cases = [case((4, 3), (3,), (3,), axes=(1,), eps=1e-3)]
rms_norm.cases = [case((4, 3), (3,), axes=(1,), eps=1e-3)]


def local_response_normalization(input: TensorLike, depth_radius: int = 5, bias: float = 1,
                                 alpha: float = 1, beta: float = 0.5,
                                 name: str | None = None) -> Tensor:
    """x / (bias + α Σ x²)^β, summed over the channels at most `depth_radius` away.

    Krizhevsky, Sutskever & Hinton 2012, "ImageNet classification with deep convolutional neural
    networks".

    Raises InvalidArgumentError: `input` is not [N, H, W, C]."""
    x = convert(input)
    if x.ndim != 4:
        raise InvalidArgumentError(f"local_response_normalization: the input must have rank 4, "
                                   f"[N, H, W, C]; got {x.spec}")
    # Shifted copies and one sum: a running sum over channels would cancel.
    radius, channels = int(depth_radius), x.spec.shape[-1]
    padded = pad(square(x), [[0, 0], [0, 0], [0, 0], [radius, radius]])
    near = stack([padded[..., i:i + channels] for i in range(2 * radius + 1)])
    return multiply(x, power(add(multiply(reduce_sum_(near, axis=(0,)), alpha), bias), -beta))

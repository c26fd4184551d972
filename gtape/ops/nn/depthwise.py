"""Depthwise convolution, its adjoints, and the separable convolution built on it."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import depthwise as numerics
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_shape, one_dtype, taken
from gtape.ops.linalg.products import pair
from gtape.ops.nn.convolution import convolution_
from gtape.ops.nn.window_arguments import Sizes, Windows, require_rank, window_outputs


def _channels(x_shape: Sizes, f_shape: Sizes) -> None:
    if x_shape[-1] != f_shape[-2]:
        raise InvalidArgumentError(
            f"depthwise convolution: the filter must be [*size, channels, multiplier] with the "
            f"channels of the input; got input {list(x_shape)} (channels last), filter "
            f"{list(f_shape)}")


def _floating(x: Spec, other: Spec) -> None:
    one_dtype("depthwise convolution", (x, other))
    taken("depthwise convolution", "real floating tensors", x)


@primitive(tf_name="DepthwiseConv2dNative")
def depthwise_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
               pads: Pads) -> Array:
    """y[n, o, c M + m] = Σ x[n, o · stride + k · dilation, c] filters[k, c, m], channels last."""
    return numerics.depthwise_forward(xp, x, filters, strides, dilations, pads)


@depthwise_.infer
def _(x: Spec, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Spec:
    _floating(x, filters)
    _channels(x.shape, filters.shape)
    outs = window_outputs("depthwise convolution", x.shape[1:-1], filters.shape[:-2], strides,
                          dilations, pads)
    return x.reshaped((x.shape[0], *outs, filters.shape[-2] * filters.shape[-1]))


depthwise_.vjp(x=lambda g, x_spec, filters, **attrs:
               depthwise_input_grad_(g, filters, shape=x_spec.shape, **attrs))
depthwise_.vjp(filters=lambda g, x, filters_spec, **attrs:
               depthwise_filter_grad_(x, g, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="DepthwiseConv2dNativeBackpropInput")
def depthwise_input_grad_(xp: ArrayModule, a: Array, filters: Array, *, shape: Sizes,
                          strides: Sizes, dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of the depthwise convolution in x: a [N, *out, C M] to `shape`."""
    return numerics.depthwise_input_grad(xp, a, filters, shape, strides, dilations, pads)


@depthwise_input_grad_.infer
def _(a: Spec, filters: Spec, *, shape: Sizes, strides: Sizes, dilations: Sizes,
      pads: Pads) -> Spec:
    _floating(a, filters)
    _channels(shape, filters.shape)
    outs = window_outputs("depthwise convolution", shape[1:-1], filters.shape[:-2], strides,
                          dilations, pads)
    wanted = (shape[0], *outs, filters.shape[-2] * filters.shape[-1])
    if a.shape != wanted:
        raise InvalidArgumentError(f"depthwise convolution: the cotangent must have shape "
                                   f"{list(wanted)} (channels last); got {a}")
    return a.reshaped(shape)


depthwise_input_grad_.vjp(a=lambda g, filters, *, shape, **attrs: depthwise_(g, filters, **attrs))
depthwise_input_grad_.vjp(filters=lambda g, a, filters_spec, *, shape, **attrs:
                          depthwise_filter_grad_(g, a, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter_grad_(xp: ArrayModule, x: Array, a: Array, *, size: Sizes, strides: Sizes,
                           dilations: Sizes, pads: Pads) -> Array:
    """The adjoint of the depthwise convolution in its filter: to [*size, C, M]."""
    return numerics.depthwise_filter_grad(xp, x, a, size, strides, dilations, pads)


@depthwise_filter_grad_.infer
def _(x: Spec, a: Spec, *, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> Spec:
    _floating(x, a)
    outs = window_outputs("depthwise convolution", x.shape[1:-1], size, strides, dilations, pads)
    channels = x.shape[-1]
    if a.shape[:-1] != (x.shape[0], *outs) or not channels or a.shape[-1] % channels:
        raise InvalidArgumentError(
            f"depthwise convolution: the cotangent must have shape {[x.shape[0], *outs]} and a "
            f"multiple of {channels} channels (channels last); got {a}")
    return x.reshaped((*size, channels, a.shape[-1] // channels))


depthwise_filter_grad_.vjp(x=lambda g, x_spec, a, *, size, **attrs:
                           depthwise_input_grad_(a, g, shape=x_spec.shape, **attrs))
depthwise_filter_grad_.vjp(a=lambda g, x, *, size, **attrs: depthwise_(x, g, **attrs))


_ATTRS: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1))}
depthwise_.cases = [case((2, 4, 3, 2), (2, 2, 2, 2), **_ATTRS)]
depthwise_input_grad_.cases = [case((2, 4, 2, 4), (2, 2, 2, 2), shape=(2, 4, 3, 2), **_ATTRS)]
depthwise_filter_grad_.cases = [case((2, 4, 3, 2), (2, 4, 2, 4), size=(2, 2), **_ATTRS)]


# ---------------------------------------------------------------- public functions
def depthwise_conv2d(input: TensorLike, filter: TensorLike, strides: IntsLike, padding: str,
                     data_format: str | None = None, dilations: Any = None,
                     name: str | None = None) -> Tensor:
    """Convolution of each channel of [N, H, W, C] with its own filters [h, w, C, M].

    The result has C M channels, the M of one input channel together. Other arguments as `conv2d`.

    Raises:
        InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit.
    """
    name = "depthwise_conv2d"
    x, kernel = pair(name, input, filter)
    require_rank(name, "the input", x.spec, 4)
    require_rank(name, "the filter", kernel.spec, 4)
    windows = Windows(name, x.spec.shape, kernel.spec.shape[:2], strides, padding, data_format,
                      dilations)
    return windows.laid_out(depthwise_(windows.last(x), kernel, **windows.attrs))


def separable_conv2d(input: TensorLike, depthwise_filter: TensorLike, pointwise_filter: TensorLike,
                     strides: IntsLike, padding: str, data_format: str | None = None,
                     dilations: object = None, name: str | None = None) -> Tensor:
    """`depthwise_conv2d`, then a convolution with `pointwise_filter` [1, 1, C M, F].

    Raises:
        InvalidArgumentError: as `depthwise_conv2d`, or the pointwise filter is not 1 by 1.
    """
    name = "separable_conv2d"
    y = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    point = convert_like(pointwise_filter, y._t, name)
    require_rank(name, "the pointwise filter", point.spec, 4)
    if point.spec.shape[:2] != (1, 1):
        raise InvalidArgumentError(f"{name}: the pointwise filter must be [1, 1, C M, F]; got "
                                   f"{point.spec}")
    windows = Windows(name, y.spec.shape, (1, 1), 1, "VALID", data_format, 1)
    return windows.laid_out(convolution_(windows.last(y), point, **windows.attrs))


def depthwise_conv2d_backprop_input(input_sizes: TensorLike, filter: TensorLike,
                                    out_backprop: TensorLike, strides: IntsLike, padding: str,
                                    data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                                    name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its input, of shape `input_sizes`."""
    name = "depthwise_conv2d_backprop_input"
    g, kernel = pair(name, out_backprop, filter)
    shape = as_shape(input_sizes, f"{name}: input_sizes")
    windows = Windows(name, shape, kernel.spec.shape[:2], strides, padding, data_format, dilations)
    return windows.laid_out(
        depthwise_input_grad_(windows.last(g), kernel, shape=windows.shape, **windows.attrs))


def depthwise_conv2d_backprop_filter(input: TensorLike, filter_sizes: TensorLike,
                                     out_backprop: TensorLike, strides: IntsLike, padding: str,
                                     data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                                     name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its filter, of shape `filter_sizes`."""
    name = "depthwise_conv2d_backprop_filter"
    x, g = pair(name, input, out_backprop)
    size = as_shape(filter_sizes, f"{name}: filter_sizes")[:2]
    windows = Windows(name, x.spec.shape, size, strides, padding, data_format, dilations)
    return depthwise_filter_grad_(windows.last(x), windows.last(g), size=size, **windows.attrs)

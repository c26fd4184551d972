"""Depthwise convolution, its adjoints, and the separable convolution built on it."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import depthwise as numerics
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_shape, one_dtype
from gtape.ops.linalg.products import pair
from gtape.ops.nn.convolution import convolution_
from gtape.ops.nn.window_arguments import (
    Sizes,
    channels_first,
    channels_last,
    is_channels_first,
    require_rank,
    spatial_pads,
    spatial_sizes,
    window_outputs,
)


def _channels(x_shape: Sizes, f_shape: Sizes) -> None:
    if x_shape[-1] != f_shape[-2]:
        raise InvalidArgumentError(
            f"depthwise convolution: the filter must be [*size, channels, multiplier] with the "
            f"channels of the input; got input {list(x_shape)} (channels last), filter "
            f"{list(f_shape)}")


def _floating(x: Spec, other: Spec) -> None:
    if not one_dtype("depthwise convolution", (x, other)).is_floating:
        raise InvalidArgumentError(f"depthwise convolution takes real floating tensors; got {x}")


@primitive(tf_name="DepthwiseConv2dNative")
def depthwise_(xp: Any, x: Any, filters: Any, *, strides: Sizes, dilations: Sizes,
               pads: Pads) -> Any:
    """y[n, o, c M + m] = Σ x[n, o · stride + k · dilation, c] filters[k, c, m], channels last."""
    return numerics.depthwise_forward(xp, x, filters, strides, dilations, pads)


@depthwise_.infer
def _(x: Spec, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Spec:
    _floating(x, filters)
    _channels(x.shape, filters.shape)
    outs = window_outputs("depthwise convolution", x.shape[1:-1], filters.shape[:-2], strides,
                          dilations, pads)
    return x.reshaped((x.shape[0], *outs, filters.shape[-2] * filters.shape[-1]))


@depthwise_.vjp("x")
def _(g: Any, x: Spec, filters: Any, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_input_grad_(g, filters, shape=x.shape, strides=strides, dilations=dilations,
                                 pads=pads)


@depthwise_.vjp("filters")
def _(g: Any, x: Any, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_filter_grad_(x, g, size=filters.shape[:-2], strides=strides,
                                  dilations=dilations, pads=pads)


@primitive(tf_name="DepthwiseConv2dNativeBackpropInput")
def depthwise_input_grad_(xp: Any, a: Any, filters: Any, *, shape: Sizes, strides: Sizes,
                          dilations: Sizes, pads: Pads) -> Any:
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


@depthwise_input_grad_.vjp("a")
def _(g: Any, filters: Any, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_(g, filters, strides=strides, dilations=dilations, pads=pads)


@depthwise_input_grad_.vjp("filters")
def _(g: Any, a: Any, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_filter_grad_(g, a, size=filters.shape[:-2], strides=strides,
                                  dilations=dilations, pads=pads)


@primitive(tf_name="DepthwiseConv2dNativeBackpropFilter")
def depthwise_filter_grad_(xp: Any, x: Any, a: Any, *, size: Sizes, strides: Sizes,
                           dilations: Sizes, pads: Pads) -> Any:
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


@depthwise_filter_grad_.vjp("x")
def _(g: Any, x: Spec, a: Any, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_input_grad_(a, g, shape=x.shape, strides=strides, dilations=dilations,
                                 pads=pads)


@depthwise_filter_grad_.vjp("a")
def _(g: Any, x: Any, *, strides: Sizes, dilations: Sizes, pads: Pads) -> Any:
    return depthwise_(x, g, strides=strides, dilations=dilations, pads=pads)


_ATTRS: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1))}
depthwise_.cases = [case((2, 4, 3, 2), (2, 2, 2, 2), **_ATTRS)]
depthwise_input_grad_.cases = [case((2, 4, 2, 4), (2, 2, 2, 2), shape=(2, 4, 3, 2), **_ATTRS)]
depthwise_filter_grad_.cases = [case((2, 4, 3, 2), (2, 4, 2, 4), size=(2, 2), **_ATTRS)]


# ---------------------------------------------------------------- public functions
def _attrs(name: str, shape: Sizes, size: Sizes, strides: Any, padding: Any, dilations: Any,
           first: bool) -> dict[str, Any]:
    steps = spatial_sizes(name, "strides", strides, 2, first)
    gaps = spatial_sizes(name, "dilations", dilations, 2, first)
    pads = spatial_pads(name, padding, shape[1:-1], size, steps, gaps, first)
    return {"strides": steps, "dilations": gaps, "pads": pads}


def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any,
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
    first = is_channels_first(name, data_format, 2)
    if first:
        x = channels_last(x)
    y = depthwise_(x, kernel, **_attrs(name, x.spec.shape, kernel.spec.shape[:2], strides, padding,
                                       dilations, first))
    return channels_first(y) if first else y


def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any,
                     padding: Any, data_format: str | None = None, dilations: Any = None,
                     name: str | None = None) -> Tensor:
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
    first = is_channels_first(name, data_format, 2)
    made = convolution_(channels_last(y) if first else y, point, strides=(1, 1), dilations=(1, 1),
                        pads=((0, 0), (0, 0)))
    return channels_first(made) if first else made


def depthwise_conv2d_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any,
                                    padding: Any, data_format: str = "NHWC",
                                    dilations: Any = (1, 1, 1, 1),
                                    name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its input, of shape `input_sizes`."""
    name = "depthwise_conv2d_backprop_input"
    g, kernel = pair(name, out_backprop, filter)
    shape = as_shape(input_sizes, f"{name}: input_sizes")
    first = is_channels_first(name, data_format, 2)
    if first:
        g, shape = channels_last(g), (shape[0], *shape[2:], shape[1])
    made = depthwise_input_grad_(g, kernel, shape=shape, **_attrs(
        name, shape, kernel.spec.shape[:2], strides, padding, dilations, first))
    return channels_first(made) if first else made


def depthwise_conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any,
                                     padding: Any, data_format: str = "NHWC",
                                     dilations: Any = (1, 1, 1, 1),
                                     name: str | None = None) -> Tensor:
    """The gradient of `depthwise_conv2d` for its filter, of shape `filter_sizes`."""
    name = "depthwise_conv2d_backprop_filter"
    x, g = pair(name, input, out_backprop)
    size = as_shape(filter_sizes, f"{name}: filter_sizes")[:2]
    first = is_channels_first(name, data_format, 2)
    if first:
        x, g = channels_last(x), channels_last(g)
    return depthwise_filter_grad_(x, g, size=size, **_attrs(name, x.spec.shape, size, strides,
                                                            padding, dilations, first))

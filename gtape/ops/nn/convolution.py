"""Convolution and its two adjoints, over 1 to 3 spatial axes, and what is built on them."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import convolution as numerics
from gtape.numerics.windows import Pads
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_shape, one_dtype
from gtape.ops.linalg.products import pair
from gtape.ops.nn.window_arguments import (
    Sizes,
    Windows,
    require_rank,
    spatial_rank,
    window_outputs,
)


def _checked(x_shape: Sizes, f_shape: Sizes, groups: int) -> None:
    try:
        numerics.check_channels(x_shape, f_shape, groups)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


def _floating(name: str, *specs: Spec) -> None:
    dtype = one_dtype(name, specs)
    if not dtype.is_floating and dtype.name != "int32":
        raise InvalidArgumentError(f"{name} takes real floating tensors; got "
                                   f"{', '.join(map(str, specs))}. Write tf.cast(x, tf.float32)")


@primitive(tf_name="Conv2D")
def convolution_(xp: ArrayModule, x: Array, filters: Array, *, strides: Sizes, dilations: Sizes,
                 pads: Pads, groups: int = 1) -> Array:
    """y[n, o, f] = Σ x[n, o · stride + k · dilation, c] filters[k, c, f], channels last."""
    return numerics.conv_forward(xp, x, filters, strides, dilations, pads, groups)


@convolution_.infer
def _(x: Spec, filters: Spec, *, strides: Sizes, dilations: Sizes, pads: Pads,
      groups: int) -> Spec:
    _floating("convolution", x, filters)
    _checked(x.shape, filters.shape, groups)
    outs = window_outputs("convolution", x.shape[1:-1], filters.shape[:-2], strides, dilations,
                          pads)
    return x.reshaped((x.shape[0], *outs, filters.shape[-1]))


convolution_.on_cuda("kernels.convolution.convolve")
convolution_.vjp(x=lambda g, x_spec, filters, **attrs:
                 input_grad_(g, filters, shape=x_spec.shape, **attrs))
convolution_.vjp(filters=lambda g, x, filters_spec, **attrs:
                 filter_grad_(x, g, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="Conv2DBackpropInput")
def input_grad_(xp: ArrayModule, a: Array, filters: Array, *, shape: Sizes, strides: Sizes,
                dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of the convolution in x: a [N, *out, F] to `shape` [N, *spatial, C]."""
    return numerics.conv_input_grad(xp, a, filters, shape, strides, dilations, pads, groups)


@input_grad_.infer
def _(a: Spec, filters: Spec, *, shape: Sizes, strides: Sizes, dilations: Sizes, pads: Pads,
      groups: int) -> Spec:
    _floating("transposed convolution", a, filters)
    _checked(shape, filters.shape, groups)
    outs = window_outputs("transposed convolution", shape[1:-1], filters.shape[:-2], strides,
                          dilations, pads)
    wanted = (shape[0], *outs, filters.shape[-1])
    if a.shape != wanted:
        raise InvalidArgumentError(
            f"transposed convolution: a convolution of the output shape {list(shape)} (channels "
            f"last) would have shape {list(wanted)}, which the input must have; got {a}")
    return a.reshaped(shape)


input_grad_.on_cuda("kernels.convolution.input_gradient")
input_grad_.vjp(a=lambda g, filters, *, shape, **attrs: convolution_(g, filters, **attrs))
input_grad_.vjp(filters=lambda g, a, filters_spec, *, shape, **attrs:
                filter_grad_(g, a, size=filters_spec.shape[:-2], **attrs))


@primitive(tf_name="Conv2DBackpropFilter")
def filter_grad_(xp: ArrayModule, x: Array, a: Array, *, size: Sizes, strides: Sizes,
                 dilations: Sizes, pads: Pads, groups: int = 1) -> Array:
    """The adjoint of the convolution in its filters: x and a [N, *out, F] to [*size, C, F]."""
    return numerics.conv_filter_grad(xp, x, a, size, strides, dilations, pads, groups)


@filter_grad_.infer
def _(x: Spec, a: Spec, *, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads,
      groups: int) -> Spec:
    _floating("filter gradient", x, a)
    outs = window_outputs("filter gradient", x.shape[1:-1], size, strides, dilations, pads)
    if a.shape[:-1] != (x.shape[0], *outs):
        raise InvalidArgumentError(f"filter gradient: the cotangent of a convolution of {x} must "
                                   f"have shape {[x.shape[0], *outs, 'F']}; got {a}")
    return x.reshaped((*size, x.shape[-1] // groups, a.shape[-1]))


filter_grad_.on_cuda("kernels.convolution.filter_gradient")
filter_grad_.vjp(x=lambda g, x_spec, a, *, size, **attrs:
                 input_grad_(a, g, shape=x_spec.shape, **attrs))
filter_grad_.vjp(a=lambda g, x, *, size, **attrs: convolution_(x, g, **attrs))


_ONE: dict[str, Any] = {"strides": (2,), "dilations": (1,), "pads": ((1, 0),)}
_TWO: dict[str, Any] = {"strides": (1, 2), "dilations": (2, 1), "pads": ((1, 1), (0, 1)),
                        "groups": 2}
convolution_.cases = [case((2, 5, 2), (2, 2, 3), **_ONE), case((1, 4, 3, 4), (2, 2, 2, 2), **_TWO)]
input_grad_.cases = [case((2, 3, 3), (2, 2, 3), shape=(2, 5, 2), **_ONE)]
filter_grad_.cases = [case((2, 5, 2), (2, 3, 3), size=(2,), **_ONE)]


# ---------------------------------------------------------------- public functions
def _convolve(name: str, input: TensorLike, filters: TensorLike, strides: IntsLike,
              padding: TensorLike, data_format: str | None, dilations: IntsLike | None, rank: int,
              ) -> Tensor:
    x, kernel = pair(name, input, filters)
    require_rank(name, "the input", x.spec, rank + 2)
    require_rank(name, "the filter", kernel.spec, rank + 2)
    size = kernel.spec.shape
    windows = Windows(name, x.spec.shape, size[:-2], strides, padding, data_format, dilations, rank)
    groups = windows.shape[-1] // size[-2] if size[-2] else 1
    return windows.laid_out(
        convolution_(windows.last(x), kernel, **windows.attrs, groups=groups or 1))


def conv1d(input: TensorLike, filters: TensorLike, stride: int, padding: str,
           data_format: str | None = "NWC", dilations: Any = None, name: str | None = None,
           ) -> Tensor:
    """Convolution of [N, W, C] with filters [w, C, F]; see `conv2d`."""
    return _convolve("conv1d", input, filters, stride, padding, data_format, dilations, 1)


def conv2d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: TensorLike,
           data_format: str | None = "NHWC", dilations: IntsLike | None = None,
           name: str | None = None) -> Tensor:
    """y[n, i, j, f] = Σ x[n, i s + a d, j s + b d, c] filters[a, b, c, f], zeros outside x.

    Args:
        input: [N, H, W, C], or [N, C, H, W] for data_format 'NCHW'.
        filters: [h, w, C / groups, F]; the number of groups follows from the shapes.
        strides, dilations: one number, one per spatial axis, or one per axis.
        padding: 'VALID'; 'SAME', which makes the result ceil(size / stride) long with the odd
            cell at the end; or pairs (before, after) for each axis.

    Raises:
        InvalidArgumentError: ranks, channels, dtypes, strides or paddings that do not fit.
    """
    return _convolve("conv2d", input, filters, strides, padding, data_format, dilations, 2)


def conv3d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: str,
           data_format: str | None = "NDHWC", dilations: Any = None, name: str | None = None,
           ) -> Tensor:
    """Convolution of [N, D, H, W, C] with filters [d, h, w, C, F]; see `conv2d`."""
    return _convolve("conv3d", input, filters, strides, padding, data_format, dilations, 3)


def convolution(input: TensorLike, filters: TensorLike, strides: Any = None, padding: str = "VALID",
                data_format: str | None = None, dilations: IntsLike | None = None,
                name: str | None = None) -> Tensor:
    """Convolution over the 1 to 3 spatial axes of `input`; see `conv2d`."""
    x, kernel = pair("convolution", input, filters)
    rank = spatial_rank("convolution", x.spec)
    return _convolve("convolution", x, kernel, strides, padding, data_format, dilations, rank)


def conv(input: TensorLike, filter: TensorLike, strides: IntsLike, padding: str,
         explicit_paddings: TensorLike = (), data_format: str = "CHANNELS_LAST",
         dilations: IntsLike = (), batch_dims: int = 1, groups: int = 1, name: str | None = None,
         ) -> Tensor:
    """`convolution` with the layout as 'CHANNELS_LAST' or 'CHANNELS_FIRST'.

    Raises:
        ValueError: another layout, or batch_dims other than 1.
        InvalidArgumentError: as `conv2d`.
    """
    if data_format not in ("CHANNELS_LAST", "CHANNELS_FIRST") or batch_dims != 1:
        raise ValueError(f"conv: data_format must be 'CHANNELS_LAST' or 'CHANNELS_FIRST' and "
                         f"batch_dims 1; got {shown(data_format)} and "
                         f"{shown(batch_dims)}")
    x, kernel = pair("conv", input, filter)
    rank = spatial_rank("conv", x.spec)
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank] if data_format == "CHANNELS_FIRST" else None
    return _convolve("conv", x, kernel, strides, _explicit(padding, explicit_paddings), layout,
                     dilations or None, rank)


def _explicit(padding: str, explicit: Any) -> Any:
    """The pairs of a flat list (before, after, before, after, …) where padding is 'EXPLICIT'."""
    if padding != "EXPLICIT":
        return padding
    flat = list(explicit)
    return list(zip(flat[0::2], flat[1::2]))


def _transposed(name: str, input: TensorLike, filters: TensorLike, output_shape: IntsLike,
                strides: IntsLike, padding: str, data_format: str | None,
                dilations: IntsLike | None, rank: int) -> Tensor:
    x, kernel = pair(name, input, filters)
    require_rank(name, "the input", x.spec, rank + 2)
    require_rank(name, "the filter", kernel.spec, rank + 2)
    shape = as_shape(output_shape, f"{name}: output_shape")
    if len(shape) != rank + 2:
        raise InvalidArgumentError(f"{name}: output_shape must hold {rank + 2} lengths; got "
                                   f"{list(shape)}")
    windows = Windows(name, shape, kernel.spec.shape[:-2], strides, padding, data_format, dilations,
                      rank)
    # The filter is [*size, F, C]: what the convolution from output to input would use.
    return windows.laid_out(
        input_grad_(windows.last(x), kernel, shape=windows.shape, **windows.attrs))


def conv1d_transpose(input: TensorLike, filters: TensorLike, output_shape: Any, strides: Any,
                     padding: Any = "SAME", data_format: str | None = "NWC", dilations: Any = None,
                     name: str | None = None) -> Tensor:
    """The adjoint of `conv1d`, to `output_shape`; see `conv2d_transpose`."""
    return _transposed("conv1d_transpose", input, filters, output_shape, strides, padding,
                       data_format, dilations, 1)


def conv2d_transpose(input: TensorLike, filters: TensorLike, output_shape: IntsLike,
                     strides: IntsLike, padding: str = "SAME", data_format: str | None = "NHWC",
                     dilations: Any = None, name: str | None = None) -> Tensor:
    """The adjoint of the `conv2d` that maps `output_shape` to the shape of `input`.

    Args:
        filters: [h, w, output channels, input channels].

    Raises:
        InvalidArgumentError: that convolution does not have the shape of `input`.
    """
    return _transposed("conv2d_transpose", input, filters, output_shape, strides, padding,
                       data_format, dilations, 2)


def conv3d_transpose(input: TensorLike, filters: TensorLike, output_shape: Any, strides: Any,
                     padding: Any = "SAME", data_format: str | None = "NDHWC",
                     dilations: Any = None, name: str | None = None) -> Tensor:
    """The adjoint of `conv3d`, to `output_shape`; see `conv2d_transpose`."""
    return _transposed("conv3d_transpose", input, filters, output_shape, strides, padding,
                       data_format, dilations, 3)


def conv_transpose(input: TensorLike, filters: TensorLike, output_shape: Any, strides: Any,
                   padding: Any = "SAME", data_format: str | None = None, dilations: Any = None,
                   name: str | None = None) -> Tensor:
    """The adjoint of `convolution`, to `output_shape`; see `conv2d_transpose`."""
    x, kernel = pair("conv_transpose", input, filters)
    rank = spatial_rank("conv_transpose", x.spec)
    return _transposed("conv_transpose", x, kernel, output_shape, strides, padding, data_format,
                       dilations, rank)


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: int, padding: str,
                  name: str | None = None) -> Tensor:
    """`conv2d` with stride 1 and dilation `rate`."""
    return _convolve("atrous_conv2d", value, filters, 1, padding, "NHWC", rate, 2)


def atrous_conv2d_transpose(value: TensorLike, filters: TensorLike, output_shape: IntsLike,
                            rate: int, padding: str, name: str | None = None) -> Tensor:
    """The adjoint of `atrous_conv2d`, to `output_shape`."""
    return _transposed("atrous_conv2d_transpose", value, filters, output_shape, 1, padding, "NHWC",
                       rate, 2)


def conv2d_backprop_input_v2(input: TensorLike, filter: TensorLike, out_backprop: TensorLike,
                             strides: IntsLike, padding: str, use_cudnn_on_gpu: bool = True,
                             explicit_paddings: TensorLike = (), data_format: str = "NHWC",
                             dilations: IntsLike = (1, 1, 1, 1), name: str | None = None) -> Tensor:
    """The gradient of `conv2d` for its input, whose shape `input` has."""
    g, kernel = pair("conv2d_backprop_input", out_backprop, filter)
    return _transposed("conv2d_backprop_input", g, kernel, convert(input).spec.shape, strides,
                       _explicit(padding, explicit_paddings), data_format, dilations, 2)


def conv2d_backprop_filter_v2(input: TensorLike, filter: TensorLike, out_backprop: TensorLike,
                              strides: IntsLike, padding: str, use_cudnn_on_gpu: bool = True,
                              explicit_paddings: TensorLike = (), data_format: str = "NHWC",
                              dilations: IntsLike = (1, 1, 1, 1), name: str | None = None,
                              ) -> Tensor:
    """The gradient of `conv2d` for its filter, whose shape `filter` has."""
    name = "conv2d_backprop_filter"
    x, g = pair(name, input, out_backprop)
    shape = convert(filter).spec.shape
    if len(shape) != 4:
        raise InvalidArgumentError(f"{name}: filter must have the shape [height, width, channels, "
                                   f"filters]; it had {list(shape)}")
    *size, channels, _ = shape
    windows = Windows(name, x.spec.shape, tuple(size), strides,
                      _explicit(padding, explicit_paddings), data_format, dilations)
    return filter_grad_(windows.last(x), windows.last(g), size=tuple(size), **windows.attrs,
                        groups=windows.shape[-1] // channels)

"""Convolutions over one and two spatial axes."""

from __future__ import annotations

from typing import Any, ClassVar

from gtape.keras import activations, constraints, initializers, regularizers
from gtape.keras.layers.arguments import (
    axis_length,
    channels_first,
    check_rank,
    padding_mode,
    positive,
    sizes,
)
from gtape.keras.layers.layer import Layer
from gtape.ops.layout import reshape
from gtape.ops.scalars import add

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW")}


class BaseConvolution(Layer):
    """What convolutions share: window, strides, padding, bias and activation."""

    rank: ClassVar[int]
    _modes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, activation: Any = None,
                 use_bias: bool = True, bias_initializer: Any = "zeros",
                 bias_regularizer: Any = None, bias_constraint: Any = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_size = sizes("kernel_size", kernel_size, self.rank)
        self.strides = sizes("strides", strides, self.rank)
        self.dilation_rate = sizes("dilation_rate", dilation_rate, self.rank)
        self.padding = padding_mode(padding, *self._modes)
        self._first = channels_first(data_format)
        self.data_format = "channels_first" if self._first else "channels_last"
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.bias_initializer = initializers.get(bias_initializer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.bias_constraint = constraints.get(bias_constraint)

    @property
    def _format(self) -> str:
        return _FORMATS[self.rank][self._first]

    def _channels(self, input_shape: Any) -> int:
        if len(input_shape) != self.rank + 2:
            raise ValueError(f"the layer '{self.name}' takes inputs of {self.rank + 2} axes; got "
                             f"shape {tuple(input_shape)}")
        return axis_length(self, input_shape, 1 if self._first else -1)

    def _add_bias(self, count: int) -> None:
        self.bias = self.add_weight(
            (count,), self.bias_initializer, regularizer=self.bias_regularizer,
            constraint=self.bias_constraint, name="bias") if self.use_bias else None

    def _finished(self, y: Any) -> Any:
        if self.bias is not None:
            bias: Any = self.bias
            if self._first:
                bias = reshape(bias, (-1, *(1,) * self.rank))
            y = add(y, bias)
        return self.activation(y)


class _Convolution(BaseConvolution):
    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, groups: int = 1,
                 activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation,
                         use_bias, bias_initializer, bias_regularizer, bias_constraint,
                         activity_regularizer=activity_regularizer, **kwargs)
        self.filters = positive("filters", filters)
        self.groups = positive("groups", groups)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        if self.filters % self.groups:
            raise ValueError(f"filters must be a multiple of groups; got {filters} and {groups}")

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        if channels % self.groups:
            raise ValueError(f"the layer '{self.name}' has {self.groups} groups, which must divide "
                             f"the number of channels of its input; got {channels}")
        self.kernel = self.add_weight(
            (*self.kernel_size, channels // self.groups, self.filters), self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint, name="kernel")
        self._add_bias(self.filters)

    def call(self, inputs: Any) -> Any:
        check_rank(self, inputs, self.rank + 2)
        return self._finished(self._convolved(inputs))

    def _convolved(self, x: Any) -> Any:
        raise NotImplementedError


class Conv2D(_Convolution):
    """Convolution of images. kernel [h, w, in / groups, filters], bias [filters].

    Args:
        filters: the number of channels of the result.
        kernel_size, strides, dilation_rate: an int, or one for rows and one for columns.
        padding: 'valid' or 'same'.
        data_format: 'channels_last' [N, H, W, C] or 'channels_first' [N, C, H, W].
        groups: channels are split into so many groups that do not see each other.

    Raises:
        ValueError: arguments out of range, or an input that does not fit.
    """

    rank = 2

    def _convolved(self, x: Any) -> Any:
        from gtape.ops.convolution import conv2d

        return conv2d(x, self.kernel, self.strides, self.padding.upper(), self._format,
                      self.dilation_rate)


class Conv1D(_Convolution):
    """Convolution of [N, steps, C]. kernel [size, in / groups, filters], bias [filters].

    padding 'causal' lets a step see itself and earlier steps only. Other arguments as `Conv2D`.
    """

    rank = 1
    _modes = ("causal",)

    def _convolved(self, x: Any) -> Any:
        from gtape.ops.convolution import conv1d

        mode = self.padding
        if mode == "causal":
            from gtape.ops.padding import pad

            before = (self.dilation_rate[0] * (self.kernel_size[0] - 1), 0)
            x = pad(x, [(0, 0), (0, 0), before] if self._first else [(0, 0), before, (0, 0)])
            mode = "valid"
        return conv1d(x, self.kernel, self.strides[0], mode.upper(), self._format,
                      self.dilation_rate[0])

"""Convolutions channel by channel."""

from __future__ import annotations

from typing import Any

from gtape.keras import constraints, initializers, regularizers
from gtape.keras.layers.arguments import check_rank, positive
from gtape.keras.layers.convolution import BaseConvolution


class DepthwiseConv2D(BaseConvolution):
    """Convolution of each channel with its own filters. kernel [h, w, in, depth_multiplier].

    Args as `Conv2D`, and:
        depth_multiplier: how many filters a channel has.
    """

    rank = 2

    def __init__(self, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
                 depth_multiplier: int = 1, data_format: str | None = None,
                 dilation_rate: Any = (1, 1), activation: Any = None, use_bias: bool = True,
                 depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, depthwise_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation,
                         use_bias, bias_initializer, bias_regularizer, bias_constraint,
                         activity_regularizer=activity_regularizer, **kwargs)
        self.depth_multiplier = positive("depth_multiplier", depth_multiplier)
        self.depthwise_initializer = initializers.get(depthwise_initializer)
        self.depthwise_regularizer = regularizers.get(depthwise_regularizer)
        self.depthwise_constraint = constraints.get(depthwise_constraint)

    def _add_kernel(self, channels: int, name: str) -> Any:
        return self.add_weight(
            (*self.kernel_size, channels, self.depth_multiplier), self.depthwise_initializer,
            regularizer=self.depthwise_regularizer, constraint=self.depthwise_constraint,
            name=name)

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.kernel = self._add_kernel(channels, "kernel")
        self._add_bias(channels * self.depth_multiplier)

    def _strides(self) -> list[int]:
        return [1, 1, *self.strides] if self._first else [1, *self.strides, 1]

    def call(self, inputs: Any) -> Any:
        from gtape.ops.depthwise import depthwise_conv2d

        check_rank(self, inputs, 4)
        return self._finished(depthwise_conv2d(
            inputs, self.kernel, self._strides(), self.padding.upper(), self._format,
            self.dilation_rate))


class SeparableConv2D(DepthwiseConv2D):
    """A depthwise convolution, then one of size 1 that mixes channels. Chollet, arXiv:1610.02357.

    depthwise_kernel [h, w, in, depth_multiplier], pointwise_kernel
    [1, 1, in depth_multiplier, filters].
    """

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1),
                 padding: str = "valid", data_format: str | None = None,
                 dilation_rate: Any = (1, 1), depth_multiplier: int = 1, activation: Any = None,
                 use_bias: bool = True, depthwise_initializer: Any = "glorot_uniform",
                 pointwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
                 bias_regularizer: Any = None, activity_regularizer: Any = None,
                 depthwise_constraint: Any = None, pointwise_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(kernel_size, strides, padding, depth_multiplier, data_format,
                         dilation_rate, activation, use_bias, depthwise_initializer,
                         bias_initializer, depthwise_regularizer, bias_regularizer,
                         activity_regularizer, depthwise_constraint, bias_constraint, **kwargs)
        self.filters = positive("filters", filters)
        self.pointwise_initializer = initializers.get(pointwise_initializer)
        self.pointwise_regularizer = regularizers.get(pointwise_regularizer)
        self.pointwise_constraint = constraints.get(pointwise_constraint)

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.depthwise_kernel = self._add_kernel(channels, "depthwise_kernel")
        self.pointwise_kernel = self.add_weight(
            (1, 1, channels * self.depth_multiplier, self.filters), self.pointwise_initializer,
            regularizer=self.pointwise_regularizer, constraint=self.pointwise_constraint,
            name="pointwise_kernel")
        self._add_bias(self.filters)

    def call(self, inputs: Any) -> Any:
        from gtape.ops.depthwise import separable_conv2d

        check_rank(self, inputs, 4)
        return self._finished(separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, self._strides(),
            self.padding.upper(), self._format, self.dilation_rate))

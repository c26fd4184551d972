"""Transposed convolutions, which enlarge."""

from __future__ import annotations

from typing import Any

from gtape.keras import constraints, initializers, regularizers
from gtape.keras.layers.arguments import check_rank, positive
from gtape.keras.layers.convolution import BaseConvolution


def enlarged_length(length: int, size: int, stride: int, padding: str, extra: int | None,
                    dilation: int) -> int:
    """The length of a transposed convolution's result, `extra` being the output padding."""
    size = (size - 1) * dilation + 1
    if extra is None:
        return length * stride + (max(size - stride, 0) if padding == "valid" else 0)
    cut = 0 if padding == "valid" else 2 * (size // 2)
    return (length - 1) * stride + size - cut + extra


class _Transposed(BaseConvolution):
    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 output_padding: Any = None, data_format: str | None = None,
                 dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation,
                         use_bias, bias_initializer, bias_regularizer, bias_constraint,
                         activity_regularizer=activity_regularizer, **kwargs)
        self.filters = positive("filters", filters)
        self.output_padding = (output_padding,) * self.rank if output_padding is None or isinstance(
            output_padding, int) else tuple(output_padding)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.kernel = self.add_weight(
            (*self.kernel_size, self.filters, channels), self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint, name="kernel")
        self._add_bias(self.filters)

    def call(self, inputs: Any) -> Any:
        check_rank(self, inputs, self.rank + 2)
        lengths = inputs.shape[2:] if self._first else inputs.shape[1:-1]
        spatial = [enlarged_length(*given) for given in zip(
            lengths, self.kernel_size, self.strides, (self.padding,) * self.rank,
            self.output_padding, self.dilation_rate)]
        batch = inputs.shape[0]
        shape = [batch, self.filters, *spatial] if self._first else [batch, *spatial, self.filters]
        return self._finished(self._transposed(inputs, shape))

    def _transposed(self, x: Any, shape: list[int]) -> Any:
        raise NotImplementedError


class Conv2DTranspose(_Transposed):
    """The transpose of a convolution of images. kernel [h, w, filters, in], bias [filters].

    Args as `Conv2D`, and:
        output_padding: what is added to the lengths (length - 1) stride + size that 'valid'
            gives.
    """

    rank = 2

    def _transposed(self, x: Any, shape: list[int]) -> Any:
        from gtape.ops.convolution import conv2d_transpose

        return conv2d_transpose(x, self.kernel, shape, self.strides, self.padding.upper(),
                                self._format, self.dilation_rate)


class Conv1DTranspose(_Transposed):
    """The transpose of a convolution of [N, steps, C]. Args as `Conv2DTranspose`."""

    rank = 1

    def _transposed(self, x: Any, shape: list[int]) -> Any:
        from gtape.ops.convolution import conv1d_transpose

        return conv1d_transpose(x, self.kernel, shape, self.strides[0], self.padding.upper(),
                                self._format, self.dilation_rate[0])

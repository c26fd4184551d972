"""Pooling: the largest or the mean value of windows, or of all positions."""

from __future__ import annotations

from typing import Any, ClassVar

from gtape.keras.layers.arguments import channels_first, check_rank, padding_mode, sizes
from gtape.keras.layers.layer import Layer
from gtape.ops.reductions import reduce_max, reduce_mean

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW")}


class _Pooling(Layer):
    rank: ClassVar[int]
    _function: ClassVar[str]

    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid",
                 data_format: str | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = sizes("pool_size", pool_size, self.rank)
        self.strides = self.pool_size if strides is None else sizes("strides", strides, self.rank)
        self.padding = padding_mode(padding)
        self._first = channels_first(data_format)
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops import pooling

        check_rank(self, inputs, self.rank + 2)
        return getattr(pooling, self._function)(
            inputs, self.pool_size, self.strides, self.padding.upper(),
            _FORMATS[self.rank][self._first])


class MaxPooling1D(_Pooling):
    """The largest value of each window of [N, steps, C]."""

    rank, _function = 1, "max_pool1d"


class MaxPooling2D(_Pooling):
    """The largest value of each window of images.

    Args:
        pool_size: an int, or one for rows and one for columns.
        strides: `pool_size` unless given.
        padding: 'valid' or 'same'.
    """

    rank, _function = 2, "max_pool2d"


class AveragePooling1D(_Pooling):
    """The mean of each window of [N, steps, C]; padding does not count."""

    rank, _function = 1, "avg_pool1d"


class AveragePooling2D(_Pooling):
    """The mean of each window of images; padding does not count. Args as `MaxPooling2D`."""

    rank, _function = 2, "avg_pool2d"


class _Global(Layer):
    rank: ClassVar[int]

    def __init__(self, data_format: str | None = None, keepdims: bool = False,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.keepdims = bool(keepdims)
        first = channels_first(data_format)
        self._axes = tuple(range(2, self.rank + 2) if first else range(1, self.rank + 1))
        self.built = True

    def call(self, inputs: Any) -> Any:
        check_rank(self, inputs, self.rank + 2)
        return self._reduced(inputs)

    def _reduced(self, x: Any) -> Any:
        raise NotImplementedError


class GlobalMaxPooling2D(_Global):
    """The largest value of each channel of an image."""

    rank = 2

    def _reduced(self, x: Any) -> Any:
        return reduce_max(x, axis=self._axes, keepdims=self.keepdims)


class GlobalMaxPooling1D(GlobalMaxPooling2D):
    """The largest value of each channel of [N, steps, C]."""

    rank = 1


class GlobalAveragePooling2D(_Global):
    """The mean of each channel of an image."""

    rank = 2

    def _reduced(self, x: Any) -> Any:
        return reduce_mean(x, axis=self._axes, keepdims=self.keepdims)


class GlobalAveragePooling1D(_Global):
    """The mean of each channel of [N, steps, C]; steps whose mask is False do not count."""

    rank = 1

    def call(self, inputs: Any, mask: Any = None) -> Any:
        check_rank(self, inputs, 3)
        if mask is None:
            return self._reduced(inputs)
        from gtape.ops.casting import cast
        from gtape.ops.layout import expand_dims
        from gtape.ops.reductions import reduce_sum

        weight: Any = expand_dims(cast(mask, inputs.dtype), 2 if self._axes == (1,) else 1)
        total: Any = reduce_sum(inputs * weight, axis=self._axes, keepdims=self.keepdims)
        return total / reduce_sum(weight, axis=self._axes, keepdims=self.keepdims)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        return None

    def _reduced(self, x: Any) -> Any:
        return reduce_mean(x, axis=self._axes, keepdims=self.keepdims)


MaxPool1D, MaxPool2D = MaxPooling1D, MaxPooling2D
AvgPool1D, AvgPool2D = AveragePooling1D, AveragePooling2D

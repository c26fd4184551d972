"""Layers that move elements around: flatten, reshape, permute, repeat, pad, enlarge."""

from __future__ import annotations

import math
from typing import Any

from gtape.keras.layers.arguments import channels_first, check_rank, positive, sizes
from gtape.keras.layers.layer import Layer
from gtape.ops.layout import expand_dims, reshape, transpose


class Flatten(Layer):
    """[batch, …] as [batch, product of the rest]."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._first = channels_first(data_format)
        self.built = True

    def call(self, inputs: Any) -> Any:
        shape = inputs.spec.shape
        if self._first and len(shape) > 2:
            inputs = transpose(inputs, [0, *range(2, len(shape)), 1])
        return reshape(inputs, (shape[0], math.prod(shape[1:])))


class Reshape(Layer):
    """[batch, …] as [batch, *target_shape]; one length may be -1.

    Raises:
        InvalidArgumentError: the numbers of elements differ.
    """

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = (target_shape,) if isinstance(target_shape, int) else tuple(
            target_shape)
        self.built = True

    def call(self, inputs: Any) -> Any:
        return reshape(inputs, (inputs.shape[0], *self.target_shape))


class Permute(Layer):
    """The axes after the batch in another order; `dims` counts from 1.

    Raises:
        ValueError: `dims` is no permutation of 1 … n.
    """

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(f"Permute: dims must be a permutation of 1 … n; got {dims}")
        self.built = True

    def call(self, inputs: Any) -> Any:
        check_rank(self, inputs, len(self.dims) + 1)
        return transpose(inputs, (0, *self.dims))


class RepeatVector(Layer):
    """[batch, features] as [batch, n, features]."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = positive("n", n)
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.arranging import repeat

        check_rank(self, inputs, 2)
        return repeat(expand_dims(inputs, 1), self.n, axis=1)


class UpSampling2D(Layer):
    """Images enlarged by whole factors.

    Args:
        size: the factors of rows and columns.
        interpolation: 'nearest' or 'bilinear' (and the other methods of tf.image.resize).
    """

    def __init__(self, size: Any = (2, 2), data_format: str | None = None,
                 interpolation: str = "nearest", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = sizes("size", size, 2)
        self.interpolation = interpolation.lower()
        self._first = channels_first(data_format)
        self.built = True

    def call(self, inputs: Any) -> Any:
        check_rank(self, inputs, 4)
        x = transpose(inputs, (0, 2, 3, 1)) if self._first else inputs
        made = self._enlarged(x)
        return transpose(made, (0, 3, 1, 2)) if self._first else made

    def _enlarged(self, x: Any) -> Any:
        if self.interpolation == "nearest":
            from gtape.ops.arranging import repeat

            return repeat(repeat(x, self.size[0], axis=1), self.size[1], axis=2)
        from gtape.image import resize

        wanted = (x.shape[1] * self.size[0], x.shape[2] * self.size[1])
        return resize(x, wanted, self.interpolation)


def _pairs(value: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, columns = (value, value) if isinstance(value, int) else value
    return tuple((n, n) if isinstance(n, int) else tuple(n) for n in (rows, columns))  # type: ignore[return-value]


class ZeroPadding2D(Layer):
    """Zeros around images.

    Args:
        padding: a number for all sides, (rows, columns), or ((top, bottom), (left, right)).
    """

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.padding = _pairs(padding)
        self._first = channels_first(data_format)
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.padding import pad

        check_rank(self, inputs, 4)
        around = [(0, 0)] + ([(0, 0), *self.padding] if self._first else [*self.padding, (0, 0)])
        return pad(inputs, around)

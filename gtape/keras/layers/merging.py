"""Layers of several inputs: sums, products, extremes, concatenation, dot products."""

from __future__ import annotations

import functools
from typing import Any

from gtape.keras.layers.layer import Layer
from gtape.ops import scalars as s
from gtape.ops.layout import expand_dims, reshape, transpose


class _Merge(Layer):
    """Takes a list of tensors; those of fewer axes get axes of length 1 after the batch."""

    _least = 1

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def call(self, inputs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)) or len(inputs) < self._least:
            raise ValueError(f"the layer '{self.name}' takes a list of at least {self._least} "
                             f"tensors; got {type(inputs).__name__}")
        rank = max(x.ndim for x in inputs)
        aligned = []
        for x in inputs:
            while x.ndim < rank:
                x = expand_dims(x, 1)
            aligned.append(x)
        return self._merged(aligned)

    def _merged(self, inputs: list[Any]) -> Any:
        raise NotImplementedError


class Add(_Merge):
    """x + y + …"""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(s.add, inputs)


class Subtract(_Merge):
    """x - y, of two tensors."""

    _least = 2

    def _merged(self, inputs: list[Any]) -> Any:
        if len(inputs) != 2:
            raise ValueError(f"Subtract takes two tensors; got {len(inputs)}")
        return s.subtract(*inputs)


class Multiply(_Merge):
    """x y …, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(s.multiply, inputs)


class Average(_Merge):
    """The mean of the tensors, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(s.add, inputs) / len(inputs)


class Maximum(_Merge):
    """The largest of the tensors, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(s.maximum, inputs)


class Minimum(_Merge):
    """The smallest of the tensors, element by element."""

    def _merged(self, inputs: list[Any]) -> Any:
        return functools.reduce(s.minimum, inputs)


class Concatenate(Layer):
    """The tensors one after another along `axis`."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.packing import concat

        return concat(inputs, self.axis)


class Dot(Layer):
    """Σ over one axis of each of two tensors, example by example.

    Args:
        axes: the axis of both, or one for each.
        normalize: divide by the lengths first, which gives cosines.
    """

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes = (axes, axes) if isinstance(axes, int) else tuple(axes)
        self.normalize = bool(normalize)
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.norms import l2_normalize
        from gtape.ops.products import matmul

        a, b = inputs
        i, j = self.axes[0] % a.ndim, self.axes[1] % b.ndim
        if a.shape[i] != b.shape[j]:
            raise ValueError(f"Dot: the axes summed over must have one length; got axis {i} of "
                             f"{tuple(a.shape)} and axis {j} of {tuple(b.shape)}")
        if self.normalize:
            a, b = l2_normalize(a, i), l2_normalize(b, j)
        left = [n for k, n in enumerate(a.shape) if k not in (0, i)]
        right = [n for k, n in enumerate(b.shape) if k not in (0, j)]
        flat_a = reshape(_axis_last(a, i), [a.shape[0], -1, a.shape[i]])
        flat_b = reshape(_axis_last(b, j), [b.shape[0], -1, b.shape[j]])
        made = matmul(flat_a, flat_b, transpose_b=True)
        return reshape(made, [a.shape[0], *left, *right] if left or right else [a.shape[0], 1])


def _axis_last(x: Any, axis: int) -> Any:
    return transpose(x, [k for k in range(x.ndim) if k != axis] + [axis])

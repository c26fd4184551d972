"""Spec: shape and dtype, all that is known of a value before it is computed."""

from __future__ import annotations

from typing import NamedTuple

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.shape import Dims


class Spec(NamedTuple):
    """Shape and dtype of a value."""

    shape: Dims
    dtype: DType

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def reshaped(self, shape: Dims) -> Spec:
        return Spec(tuple(shape), self.dtype)


def broadcast_shapes(name: str, *specs: Spec) -> Dims:
    """The common shape of `specs` by NumPy's rule: axes are aligned at the end; length 1 stretches.

    Raises:
        InvalidArgumentError: two lengths differ and neither is 1.
    """
    rank = max(len(s.shape) for s in specs)
    padded = [(1,) * (rank - len(s.shape)) + s.shape for s in specs]
    result = []
    for lengths in zip(*padded):
        real = [n for n in lengths if n != 1]
        if any(n != real[0] for n in real[1:]):
            raise InvalidArgumentError(
                f"{name}: the shapes must be equal or broadcast (axes aligned at the end, a "
                f"length of 1 stretches); got {', '.join(str(s) for s in specs)}. Use tf.reshape, "
                f"tf.expand_dims or tf.broadcast_to to align them")
        result.append(real[0] if real else 1)
    return tuple(result)


def normal_axes(name: str, axis: int | tuple[int, ...] | list[int] | None, ndim: int,
                ) -> tuple[int, ...]:
    """`axis` as a sorted tuple of distinct non-negative axes; None means all.

    Raises:
        InvalidArgumentError: an axis is outside [-ndim, ndim), or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise InvalidArgumentError(
                f"{name}: an axis must lie in [{-ndim}, {ndim}) for a tensor of rank {ndim}; "
                f"got {a}")
    normal = tuple(sorted({a % ndim for a in axes}))
    if len(normal) != len(axes):
        raise InvalidArgumentError(f"{name}: the axes must be distinct; got {axes}")
    return normal


def reduced(shape: Dims, axes: tuple[int, ...], keepdims: bool) -> Dims:
    """`shape` after a reduction over `axes` (non-negative)."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)

"""unique: the distinct elements of a vector, or the distinct slices along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import normal_axes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_ints
from gtape.ops.shape.layout import transpose_


class Unique(NamedTuple):
    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


@primitive(tf_name="Unique")
def unique_(xp: ArrayModule, x: Array, first: Array) -> Array:
    """The rows of x at the positions where each occurs first."""
    return x[first]


unique_.infer(lambda x, first: x.reshaped((*first.shape, *x.shape[1:])))
unique_.cases = [case((4,), ints(3, below=4)), case((4, 2), ints(3, below=4))]


def _classes(xp: Any, rows: Array) -> tuple[Any, Any, Any]:
    """Of distinct rows in sorted order: where each occurs first, which each row is, how many."""
    # Rows without elements are all the same row, which NumPy's unique by axis does not say.
    if not rows.size:
        some = min(len(rows), 1)
        return (xp.zeros(some, np.int64), xp.zeros(len(rows), np.int64),
                xp.full(some, len(rows), np.int64))
    flat = rows.reshape(len(rows), -1)
    # One column is sorted as numbers; along an axis NumPy compares rows as records.
    keys, axis = (flat[:, 0], None) if flat.shape[1] == 1 else (flat, 0)
    # equal_nan=False: to TensorFlow's hash table no nan is equal to another.
    return xp.unique(keys, return_index=True, return_inverse=True,
                     return_counts=True, axis=axis, equal_nan=False)[1:]


def _first(x: Tensor, axis: int) -> Tensor:
    """`x` with its first axis and `axis` exchanged."""
    perm = [*range(x.ndim)]
    perm[0], perm[axis] = axis, 0  # an exchange undoes itself: `_first` brings the axes back too
    return transpose_(x, perm=tuple(perm)) if axis else x


@at_home
def _distinct(x: Tensor, out_idx: str | DType, axis: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    tensor = convert(x)
    dtype, rows = as_dtype(out_idx), _first(tensor, axis)
    xp = tensor._t.xp
    first, inverse, count = _classes(xp, rows._array_())
    # NumPy numbers the classes by size; TensorFlow does by first occurrence.
    order = xp.argsort(first)
    place = xp.argsort(order)  # argsort inverts a permutation

    def integers(array: np.ndarray, wanted: DType) -> EagerTensor:
        return EagerTensor(array.astype(wanted.np_dtype), tensor._t.device.typed(wanted))

    return (_first(unique_(rows, integers(first[order], dtypes.int64)), axis),
            # NumPy 2.0 gives the inverse of unique along an axis more axes than one.
            integers(place[inverse.reshape(-1)], dtype), integers(count[order], dtype))


def _vector(x: TensorLike) -> Tensor:
    tensor = convert(x)
    if tensor.ndim != 1:
        raise InvalidArgumentError(f"unique takes a vector; got {tensor.spec}. Use tf.reshape")
    return tensor


def _axis(x: Tensor, axis: Sequence[int]) -> tuple[Tensor, int]:
    """The tensor, and which axis the vector `axis` of one number means."""
    wanted, tensor = as_ints(axis, "UniqueV2: axis"), convert(x)
    if not wanted:
        return _vector(tensor), 0
    if len(wanted) != 1:
        raise InvalidArgumentError(f"UniqueV2: axis must hold one number or none; got "
                                   f"{list(wanted)}")
    return tensor, normal_axes("UniqueV2", wanted, tensor.ndim)[0]


def unique(x: TensorLike, out_idx: DType = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in the order they first occur, and x as indices of them.

    A nan is distinct from every other. No gradient is registered.

    Raises:
        InvalidArgumentError: `x` is not a vector.
    """
    return Unique(*_distinct(_vector(x), out_idx)[:2])


def unique_with_counts(x: TensorLike, out_idx: str | DType = dtypes.int32, name: str | None = None,
                       ) -> UniqueWithCounts:
    """`unique`, and how often each distinct element occurs."""
    return UniqueWithCounts(*_distinct(_vector(x), out_idx))


def unique_v2(*, x: Tensor, axis: Any, out_idx: DType = dtypes.int32, name: str | None = None,
              ) -> Unique:
    """The distinct slices along `axis` in the order they first occur, and x as indices of them.

    Args:
        axis: a vector of one number; of none, where x is a vector.

    Raises:
        InvalidArgumentError: no such axis.
    """
    tensor, at = _axis(x, axis)
    return Unique(*_distinct(tensor, out_idx, at)[:2])


def unique_with_counts_v2(*, x: Tensor, axis: Any, out_idx: DType = dtypes.int32,
                          name: str | None = None) -> UniqueWithCounts:
    """`unique_v2`, and how often each distinct slice occurs."""
    tensor, at = _axis(x, axis)
    return UniqueWithCounts(*_distinct(tensor, out_idx, at))

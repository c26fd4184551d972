"""RaggedTensors from dense and sparse tensors and back; axes merged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.shape import TensorShape
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints, as_items
from gtape.ops.ragged.elementwise import taken
from gtape.ops.ragged.partition import ends_of, host, integers, spans, splits_dtype
from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.ops.shape.layout import broadcast_to_, reshape_
from gtape.ops.sparse.tensor import SparseTensor


def bounds(x: RaggedTensor) -> list[int]:
    """The shape of the smallest dense tensor that holds all values."""
    found = [x._count()]
    inner: Any = x
    while isinstance(inner, RaggedTensor):
        longest = np.diff(inner._host())
        found.append(inner._uniform if inner._uniform is not None else
                     int(longest.max()) if len(longest) else 0)
        inner = inner.values
    return [*found, *inner.spec.shape[1:]]


def places(x: RaggedTensor) -> np.ndarray:
    """The index tuple of every flat value: [n, ragged_rank + 1]."""
    ends = x._host()
    lengths = np.diff(ends)
    at = np.stack([np.repeat(np.arange(len(lengths)), lengths),
                   spans(np.zeros(len(lengths), np.int64), lengths)], 1)
    inner = x.values
    while isinstance(inner, RaggedTensor):
        lengths = np.diff(inner._host())
        index = spans(np.zeros(len(lengths), np.int64), lengths)
        at = np.concatenate([np.repeat(at, lengths, axis=0), index[:, None]], 1)
        inner = inner.values
    return at


def to_tensor(x: RaggedTensor, default_value: Any = None, shape: Any = None) -> Tensor:
    """A dense tensor with every value at its place.

    Args:
        default_value: what fills the rest, broadcast to the innermost values; 0, False or ""
            unless given.
        shape: lengths to cut or fill to; None for the least that holds all.

    Raises:
        InvalidArgumentError: the shape has another rank.
    """
    from gtape.ops.indexing.scattering import tensor_scatter_update_

    lengths = bounds(x)
    flat, at = x.flat_values, places(x)
    if shape is not None:
        wanted = _shape(shape)
        if wanted.rank is not None:
            lengths = _fitted(x, lengths, wanted)
            kept = (at < np.array(lengths[:at.shape[1]])).all(axis=1)
            if not kept.all():
                flat, at = taken(flat, np.flatnonzero(kept)), at[kept]
    empty = b"" if x.dtype is string else x.dtype.as_numpy_dtype(0)
    value = convert(empty if default_value is None else default_value, x.dtype
                    if not isinstance(default_value, Tensor) else None, flat._t.device)
    filled = broadcast_to_(value, shape=tuple(lengths))
    if not len(at):
        return filled
    return tensor_scatter_update_(filled, convert(at, int64, flat._t.device), flat)


def _shape(shape: Any) -> TensorShape:
    """The shape that is asked for; None and -1 leave a length open.

    Raises:
        TypeError: it is no shape.
    """
    if isinstance(shape, TensorShape):
        return shape
    if hasattr(shape, "dtype"):
        shape = as_ints(shape, "to_tensor: shape")
    return TensorShape([None if type(n) is int and n == -1 else n
                        for n in as_items(shape, "to_tensor: shape")])


def _fitted(x: RaggedTensor, lengths: list[int], wanted: TensorShape) -> list[int]:
    inner = x.ragged_rank + 1
    if wanted.rank != len(lengths) or any(
            m is not None and m != n for m, n in zip(wanted.as_list()[inner:], lengths[inner:])):
        raise InvalidArgumentError(f"to_tensor: the shape must have the rank and the dense lengths "
                                   f"of {x.shape}; got {wanted}")
    return [n if m is None else m for m, n in zip(wanted.as_list(), lengths)]


def to_sparse(x: RaggedTensor) -> SparseTensor:
    """Every value at its place, as a SparseTensor."""
    flat, at = x.flat_values, places(x)
    lengths = tuple(bounds(x))
    inner = flat.spec.shape[1:]
    if inner:
        cells = np.stack(np.unravel_index(np.arange(math.prod(inner)), inner), 1)
        at = np.concatenate([np.repeat(at, len(cells), axis=0), np.tile(cells, (len(at), 1))], 1)
        flat = reshape_(flat, shape=(len(at),))
    return SparseTensor._made(convert(at.astype(np.int64), None, flat._t.device), flat, lengths)


def from_sparse(st_input: Any, row_splits_dtype: Any = int64) -> RaggedTensor:
    """See `RaggedTensor.from_sparse`."""
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"from_sparse takes a SparseTensor; got {shown(st_input)}")
    if len(st_input._lengths) != 2:
        raise ValueError(f"from_sparse takes a matrix; got the shape {list(st_input.shape)}")
    at = host(st_input.indices)
    lengths = np.bincount(at[:, 0], minlength=st_input._lengths[0]) if len(at) else np.zeros(
        st_input._lengths[0], np.int64)
    wanted = spans(np.zeros(len(lengths), np.int64), lengths)
    if (at[1:, 0] < at[:-1, 0]).any() or not np.array_equal(wanted, at[:, 1]):
        raise InvalidArgumentError("from_sparse: the values of every row must stand at its "
                                   "beginning, in order, without gaps")
    made = RaggedTensor._made(st_input.values, ends_of(lengths))
    return made.with_row_splits_dtype(row_splits_dtype)


def from_tensor(tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
                row_splits_dtype: Any = int64) -> RaggedTensor:
    """The rows of a dense tensor.

    Args:
        lengths: how many values each row has; a list of vectors for several ragged axes.
        padding: the value, or inner tensor, that fills the ends of rows and is left out there.
        ragged_rank: how many axes become ragged.

    Raises:
        ValueError: a vector or scalar, both `lengths` and `padding`, or no such ragged_rank.
    """
    x, dtype = convert(tensor), splits_dtype(row_splits_dtype)
    ragged_rank = as_int(ragged_rank, "from_tensor: ragged_rank")
    if x.ndim < 2 or not 0 < ragged_rank < x.ndim:
        raise ValueError(f"from_tensor takes a tensor of rank 2 or more, and a ragged_rank that is "
                         f"more than 0 and less than its rank; got {x.spec} and {ragged_rank}")
    if lengths is not None and padding is not None:
        raise ValueError("from_tensor: give lengths or padding, not both")
    if lengths is not None:
        return _cut(x, lengths).with_row_splits_dtype(dtype)
    shape = x.spec.shape
    if padding is not None:
        return _unpadded(x, padding, ragged_rank).with_row_splits_dtype(dtype)
    made: Any = reshape_(x, shape=(math.prod(shape[:ragged_rank + 1]), *shape[ragged_rank + 1:]))
    for axis in range(ragged_rank, 0, -1):
        rows = math.prod(shape[:axis])
        ends = np.arange(rows + 1) * shape[axis]
        made = RaggedTensor._made(made, ends, shape[axis])
    return made.with_row_splits_dtype(dtype)  # type: ignore[no-any-return]


def _cut(x: Tensor, lengths: Any) -> Any:
    """The rows of x of these lengths, along one axis or several."""
    first = lengths[0] if isinstance(lengths, (list, tuple)) and lengths else None
    if isinstance(first, (list, tuple)) or (
            isinstance(first, (Tensor, np.ndarray)) and first.ndim > 0):
        outer = _cut_rows(x, first)
        if len(lengths) == 1:
            return outer
        return outer.with_values(_cut(outer.values, lengths[1:]))
    return _cut_rows(x, lengths)


def _cut_rows(x: Tensor, lengths: Any) -> RaggedTensor:
    """The rows of x of these lengths, along the first axis."""
    shape = x.spec.shape
    count = np.clip(host(integers(lengths, "from_tensor: lengths")), 0, shape[1])
    if len(count) != shape[0]:
        raise ValueError(f"from_tensor: there must be one length for each of {shape[0]} rows; got "
                         f"{len(count)}")
    rows = reshape_(x, shape=(shape[0] * shape[1], *shape[2:]))
    return RaggedTensor._made(taken(rows, spans(np.arange(shape[0]) * shape[1], count)),
                              ends_of(count))


def _unpadded(x: Tensor, padding: Any, ragged_rank: int) -> Any:
    """The rows of the innermost ragged axis without the padding at their ends."""
    shape = x.spec.shape
    filler = host(convert(padding, x.dtype))
    if filler.shape != shape[ragged_rank + 1:]:
        raise ValueError(f"from_tensor: padding must have the shape {list(shape[ragged_rank + 1:])}"
                         f" of the innermost values; got {list(filler.shape)}")
    count = math.prod(shape[:ragged_rank])
    table = host(x).reshape((count, shape[ragged_rank], -1))
    real = (table != filler.reshape(-1)).any(axis=2)
    lengths = np.where(real.any(axis=1), shape[ragged_rank] - real[:, ::-1].argmax(axis=1), 0)
    made: Any = _cut(reshape_(x, shape=(count, *shape[ragged_rank:])), lengths)
    for axis in range(ragged_rank - 1, 0, -1):
        rows = math.prod(shape[:axis])
        made = RaggedTensor._made(made, np.arange(rows + 1) * shape[axis], shape[axis])
    return made


def merge_dims(x: RaggedTensor, outer_axis: int, inner_axis: int) -> Any:
    """The axes from `outer_axis` to `inner_axis` as one; see `RaggedTensor.merge_dims`.

    Raises:
        ValueError: no such axes, or the outer lies within the inner.
    """
    rank = x.ragged_rank + x.flat_values.ndim
    outer, inner = as_int(outer_axis, "outer_axis"), as_int(inner_axis, "inner_axis")
    low, high = (a + rank if a < 0 else a for a in (outer, inner))
    if not 0 <= low <= high < rank:
        raise ValueError(f"merge_dims: outer_axis must not be more than inner_axis, and both axes "
                         f"of {x.shape}; got {shown((outer_axis, inner_axis))}")
    return _merged(x, low, high)


def _merged(x: Any, low: int, high: int) -> Any:
    if low == high:
        return x
    if not isinstance(x, RaggedTensor):
        shape = x.spec.shape
        return reshape_(x, shape=(*shape[:low], math.prod(shape[low:high + 1]), *shape[high + 1:]))
    if low > 1:
        return x.with_values(_merged(x.values, low - 1, high - 1))
    inner = x.values
    if low == 0:
        return _merged(inner, 0, high - 1)
    if isinstance(inner, RaggedTensor):
        ends = inner._host()[x._host()]
        return _merged(RaggedTensor._made(inner.values, ends), low, high - 1)
    shape = inner.spec.shape
    flat = reshape_(inner, shape=(math.prod(shape[:high]), *shape[high:]))
    return RaggedTensor._made(flat, x._host() * math.prod(shape[1:high]))


def of_dense(value: Any, ragged_rank: int) -> Any:
    """A tensor as a RaggedTensor with so many ragged axes; one that is ragged as it is."""
    if isinstance(value, RaggedTensor):
        if value.ragged_rank < ragged_rank:
            return value._with(of_dense(value.values, ragged_rank - 1))
        return value
    return value if ragged_rank <= 0 else from_tensor(value, ragged_rank=ragged_rank)

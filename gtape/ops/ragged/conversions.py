"""RaggedTensors from dense and sparse tensors and back; axes merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape, normal_axes
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints, as_items, axes_of, host
from gtape.ops.indexing.scattering import tensor_scatter_update_
from gtape.ops.ragged.elementwise import taken
from gtape.ops.ragged.partition import ends_of, integers, spans, splits_dtype, within
from gtape.ops.ragged.ragged_tensor import RaggedTensor, rank_of
from gtape.ops.shape.layout import broadcast_to_, expand_dims, reshape_
from gtape.ops.sparse.tensor import SparseTensor


def bounds(x: RaggedTensor) -> list[int]:
    """The shape of the smallest dense tensor that holds all values."""
    lengths = [x._count()]
    for level in x._levels():
        rows = np.diff(level._host())
        lengths.append(level._uniform if level._uniform is not None else
                       int(rows.max()) if len(rows) else 0)
    return [*lengths, *x.flat_values.spec.shape[1:]]


def bounding_shape(self: RaggedTensor, axis: object = None, name: str | None = None,
                   out_type: DTypeLike | None = None) -> Tensor:
    """The shape of the smallest dense tensor that holds it; one length of it for an `axis`, or
    several for a list. Raises InvalidArgumentError: no such axis; TypeError: an out_type that is
    neither int32 nor int64."""
    dtype = self.row_splits.dtype if out_type is None else splits_dtype(out_type)
    lengths = np.array(bounds(self), dtype.np_dtype)
    if axis is not None:
        wanted: Any = axes_of(axis)
        one = isinstance(wanted, int)
        axes = [normal_axes("bounding_shape", a, len(lengths))[0]
                for a in ((wanted,) if one else wanted)]
        lengths = lengths[axes[0]] if one else lengths[axes]
    return convert(lengths, None, self.row_splits._t.device)


def places(x: RaggedTensor) -> np.ndarray:
    """The index tuple of every flat value: [n, ragged_rank + 1]."""
    at = np.arange(x._count())[:, None]
    for level in x._levels():
        lengths = np.diff(level._host())
        at = np.concatenate([np.repeat(at, lengths, axis=0), within(lengths)[:, None]], 1)
    return at


def uniform_rows(values: object, lengths: Sequence[int]) -> Any:
    """Values in rows of one length along each of the axes that `lengths` are those of, the first of
    them the number of rows."""
    for axis in range(len(lengths) - 1, 0, -1):
        ends = np.arange(math.prod(lengths[:axis]) + 1) * lengths[axis]
        values = RaggedTensor._of_splits(values, ends, lengths[axis])
    return values


def to_tensor(self: RaggedTensor, default_value: Any = None, name: str | None = None,
              shape: Any = None) -> Tensor:
    """A dense tensor with every value at its place.

    Args:
        default_value: what fills the rest, broadcast to the innermost values; 0, False or ""
            unless given.
        shape: lengths to cut or fill to; None for the least that holds all.

    Raises:
        InvalidArgumentError: the shape has another rank.
    """
    lengths = bounds(self)
    flat, at = self.flat_values, places(self)
    if shape is not None:
        wanted = _shape(shape)
        if wanted.rank is not None:
            lengths = _fitted(self, lengths, wanted)
            # A shape may also cut: values beyond it are left out, as TensorFlow does.
            kept = (at < np.array(lengths[:at.shape[1]])).all(axis=1)
            if not kept.all():
                flat, at = taken(flat, np.flatnonzero(kept)), at[kept]
    empty = b"" if self.dtype is string else self.dtype.as_numpy_dtype(0)
    value = convert(empty if default_value is None else default_value, self.dtype
                    if not isinstance(default_value, Tensor) else None, flat._t.device)
    filled = broadcast_to_(value, shape=tuple(lengths))
    if not len(at):  # nothing to scatter: the filled tensor may have no elements either
        return filled
    return tensor_scatter_update_(filled, convert(at, int64, flat._t.device), flat)


def _shape(shape: Sequence[int | None]) -> TensorShape:
    """The shape that is asked for; None and -1 leave a length open."""
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


def to_sparse(self: RaggedTensor, name: str | None = None) -> SparseTensor:
    """A SparseTensor with every value at its place."""
    flat, at = self.flat_values, places(self)
    inner = flat.spec.shape[1:]
    if inner:
        cells = np.stack(np.unravel_index(np.arange(math.prod(inner)), inner), 1)
        at = np.concatenate([np.repeat(at, len(cells), axis=0), np.tile(cells, (len(at), 1))], 1)
        flat = reshape_(flat, shape=(len(at),))
    return SparseTensor._of_parts(convert(at.astype(np.int64), None, flat._t.device), flat,
                                  tuple(bounds(self)))


def from_sparse(st_input: object, name: str | None = None, row_splits_dtype: DTypeLike = int64,
                ) -> RaggedTensor:
    """The rows of a sparse matrix whose values stand at the beginning of every row. Raises
    TypeError: it is no SparseTensor; ValueError: it is no matrix; InvalidArgumentError: there is a
    gap before a value."""
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"from_sparse takes a SparseTensor; got {shown(st_input)}")
    if len(st_input._lengths) != 2:
        raise ValueError(f"from_sparse takes a matrix; got the shape {list(st_input.shape)}")
    at = host(st_input.indices)
    lengths = np.bincount(at[:, 0], minlength=st_input._lengths[0]) if len(at) else np.zeros(
        st_input._lengths[0], np.int64)
    # The columns of each row must be 0, 1, … : `within` says just these.
    if (at[1:, 0] < at[:-1, 0]).any() or not np.array_equal(within(lengths), at[:, 1]):
        raise InvalidArgumentError("from_sparse: the values of every row must stand at its "
                                   "beginning, in order, without gaps")
    rows = RaggedTensor._of_splits(st_input.values, ends_of(lengths))
    return rows.with_row_splits_dtype(row_splits_dtype)


def from_tensor(tensor: TensorLike, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
                name: str | None = None, row_splits_dtype: DTypeLike = int64) -> RaggedTensor:
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
        rows = _cut(x, lengths)
    elif padding is not None:
        rows = _unpadded(x, padding, ragged_rank)
    else:
        shape = x.spec.shape
        outer, inner = shape[:ragged_rank + 1], shape[ragged_rank + 1:]
        rows = uniform_rows(reshape_(x, shape=(math.prod(outer), *inner)), outer)
    return rows.with_row_splits_dtype(dtype)


def _cut(x: Tensor, lengths: Any) -> RaggedTensor:
    """The rows of x of these lengths, along one axis or several."""
    first = lengths[0] if isinstance(lengths, (list, tuple)) and lengths else None
    if isinstance(first, (list, tuple)) or (
            isinstance(first, (Tensor, np.ndarray)) and first.ndim > 0):
        outer = _cut_rows(x, first)
        if len(lengths) == 1:
            return outer
        return outer.with_values(_cut(outer.values, lengths[1:]))
    return _cut_rows(x, lengths)


def _cut_rows(x: Tensor, lengths: TensorLike) -> RaggedTensor:
    """The rows of x of these lengths, along the first axis."""
    shape = x.spec.shape
    count = np.clip(host(integers(lengths, "from_tensor: lengths")), 0, shape[1])
    if len(count) != shape[0]:
        raise ValueError(f"from_tensor: there must be one length for each of {shape[0]} rows; got "
                         f"{len(count)}")
    rows = reshape_(x, shape=(shape[0] * shape[1], *shape[2:]))
    return RaggedTensor._of_splits(taken(rows, spans(np.arange(shape[0]) * shape[1], count)),
                                   ends_of(count))


def _unpadded(x: Tensor, padding: int, ragged_rank: int) -> RaggedTensor:
    """The rows of the innermost ragged axis without the padding at their ends."""
    shape = x.spec.shape
    filler = host(convert(padding, x.dtype))
    if filler.shape != shape[ragged_rank + 1:]:
        raise ValueError(f"from_tensor: padding must have the shape {list(shape[ragged_rank + 1:])}"
                         f" of the innermost values; got {list(filler.shape)}")
    count = math.prod(shape[:ragged_rank])
    table = host(x).reshape((count, shape[ragged_rank], -1))
    # Only at the ends of rows: padding between values is a value.
    real = (table != filler.reshape(-1)).any(axis=2)
    lengths = np.where(real.any(axis=1), shape[ragged_rank] - real[:, ::-1].argmax(axis=1), 0)
    rows = _cut(reshape_(x, shape=(count, *shape[ragged_rank:])), lengths)
    return uniform_rows(rows, shape[:ragged_rank])


def merge_dims(self: RaggedTensor, outer_axis: int, inner_axis: int) -> Any:
    """The axes from `outer_axis` to `inner_axis` as one: a RaggedTensor, or a tensor where none is
    left ragged. Raises ValueError: no such axes, or the outer lies within the inner."""
    rank = rank_of(self)
    outer, inner = as_int(outer_axis, "outer_axis"), as_int(inner_axis, "inner_axis")
    low, high = (a + rank if a < 0 else a for a in (outer, inner))
    if not 0 <= low <= high < rank:
        raise ValueError(f"merge_dims: outer_axis must not be more than inner_axis, and both axes "
                         f"of {self.shape}; got {shown((outer_axis, inner_axis))}")
    return _merged(self, low, high)


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
        # Where rows of rows end, by the number of the inner row that each outer one ends with.
        ends = inner._host()[x._host()]
        return _merged(RaggedTensor._of_splits(inner.values, ends), low, high - 1)
    shape = inner.spec.shape
    flat = reshape_(inner, shape=(math.prod(shape[:high]), *shape[high:]))
    return RaggedTensor._of_splits(flat, x._host() * math.prod(shape[1:high]))


def of_dense(value: Any, ragged_rank: int) -> Any:
    """A tensor as a RaggedTensor with so many ragged axes; one that is ragged as it is."""
    if isinstance(value, RaggedTensor):
        if value.ragged_rank < ragged_rank:
            return value._with(of_dense(value.values, ragged_rank - 1))
        return value
    return value if ragged_rank <= 0 else from_tensor(value, ragged_rank=ragged_rank)


def expanded(x: object, axis: int) -> Any:
    """A tensor or RaggedTensor with an axis of length 1 before `axis`."""
    if not isinstance(x, RaggedTensor):
        return expand_dims(x, axis)
    if axis == 0:
        return RaggedTensor._of_splits(x, np.array([0, x._count()]), x._count())
    if axis == 1:
        return RaggedTensor._of_splits(x, np.arange(x._count() + 1), 1)
    return x._with(expanded(x.values, axis - 1))

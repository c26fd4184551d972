"""Sums, maxima and softmax of SparseTensors, and sums of rows picked by index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import normal_axes
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops.arguments import as_int, axes_of, host
from gtape.ops.elementwise.scalars import exp, sqrt
from gtape.ops.indexing import segments
from gtape.ops.indexing.gathering import gather, rows_or_zero_, scatter_rows_
from gtape.ops.indexing.segments import segment_extreme_
from gtape.ops.shape.identity import stop_gradient
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.padding import pad
from gtape.ops.sparse.places import cells_, columns_, keys_of, sparse
from gtape.ops.sparse.tensor import SparseTensor, placed


def _reduced(name: str, x: SparseTensor, axis: IntsLike | None, keepdims: bool | None,
             sparse_result: bool) -> Tensor | SparseTensor:
    rank = len(x._lengths)
    gone = normal_axes(name, axes_of(axis), rank)
    left = tuple(a for a in range(rank) if a not in gone)
    if keepdims:
        shape = tuple(1 if a in gone else n for a, n in enumerate(x._lengths))
        columns = tuple(-1 if a in gone else a for a in range(rank))
    else:
        shape = tuple(x._lengths[a] for a in left)
        columns = left
    if sparse_result:
        rows = host(x.indices)[:, list(left)]
        (keys,) = keys_of(tuple(x._lengths[a] for a in left), rows)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        ids, count = placed(inverse.reshape(-1).astype(np.int64), x.values), len(first)
        at = host(columns_(x.indices, axes=columns))[first]
        return SparseTensor._of_rows(at, _segments(name, x.values, ids, count), shape)
    ids = cells_(x.indices, shape=x._lengths, axes=left)
    return reshape_(_segments(name, x.values, ids, math.prod(shape)), shape=shape)


def _segments(name: str, values: Tensor, ids: Tensor, count: int) -> Tensor:
    if name == "reduce_sum":
        return scatter_rows_(values, ids, rows=count)
    return segment_extreme_(values, ids, count=count, largest=True, zeros=True)


def reduce_sum(sp_input: SparseTensor, axis: IntsLike | None = None, keepdims: bool | None = None,
               output_is_sparse: bool = False, name: str | None = None) -> Tensor | SparseTensor:
    """Σ over `axis` (all axes when None): dense, or a SparseTensor if `output_is_sparse`.

    Raises:
        InvalidArgumentError: no such axis.
    """
    return _reduced("reduce_sum", sparse(sp_input, "reduce_sum"), axis, keepdims, output_is_sparse)


def reduce_max(sp_input: SparseTensor, axis: IntsLike | None = None, keepdims: bool | None = None,
               output_is_sparse: bool = False, name: str | None = None) -> Tensor | SparseTensor:
    """The largest of the values over `axis`, what is not there left out; 0 where there is none.

    Dense, or a SparseTensor if `output_is_sparse`. Ties share the gradient.

    Raises:
        InvalidArgumentError: no such axis, or values that are no real numbers.
    """
    return _reduced("reduce_max", sparse(sp_input, "reduce_max"), axis, keepdims, output_is_sparse)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax over the values of the last axis, what is not there left out.

    Raises:
        ValueError: fewer than two axes.
    """
    x = sparse(sp_input, "softmax")
    if len(x._lengths) < 2:
        raise ValueError(f"tf.sparse.softmax takes two axes or more; got {list(x.shape)}")
    rows = host(x.indices)[:, :-1]
    (keys,) = keys_of(x._lengths[:-1], rows)
    first, inverse = np.unique(keys, return_inverse=True)
    ids, count = placed(inverse.reshape(-1).astype(np.int64), x.values), len(first)
    # The largest of each row is taken off, so that no exp overflows; it is no part of the gradient.
    most = segment_extreme_(x.values, ids, count=count, largest=True)
    raised = exp(x.values - stop_gradient(rows_or_zero_(most, ids)))
    total = scatter_rows_(raised, ids, rows=count)
    return x._with(raised / rows_or_zero_(total, ids))


def _segment(function: Any, data: Variable, indices: Sequence[int], segment_ids: Sequence[int],
             num_segments: int | None) -> Tensor:
    """A segment function of rows picked by index, with rows of 0 up to num_segments."""
    rows = function(gather(convert(data), indices), segment_ids)
    if num_segments is None:
        return rows
    wanted, count = as_int(num_segments, "num_segments"), rows.spec.shape[0]
    if wanted < count:
        raise InvalidArgumentError(f"num_segments must be more than the last of segment_ids, "
                                   f"{count - 1}; got {wanted}")
    return pad(rows, [[0, wanted - count], *[[0, 0]] * (rows.ndim - 1)])


def segment_sum(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None,
                name: str | None = None) -> Tensor:
    """y[s] = Σ data[indices[i]] over i with segment_ids[i] = s; 0 where there is none.

    Args:
        segment_ids: integers [n], >= 0, not decreasing.
        num_segments: how many rows the result has; as the last id says unless given.

    Raises:
        InvalidArgumentError: ids that decrease or do not fit, or an index out of range.
    """
    return _segment(segments.segment_sum, data, indices, segment_ids, num_segments)


def segment_mean(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None,
                 name: str | None = None) -> Tensor:
    """The mean of the rows picked for each segment. See `segment_sum`."""
    return _segment(segments.segment_mean, data, indices, segment_ids, num_segments)


def segment_sqrt_n(data: Any, indices: Any, segment_ids: Any, num_segments: int | None = None,
                   name: str | None = None) -> Tensor:
    """The sum of the n rows picked for each segment, divided by √n. See `segment_sum`."""
    def rooted(rows: Tensor, ids: Sequence[int]) -> Tensor:
        x, at, count = segments._sorted("segment_sqrt_n", rows, ids)
        return segments.segment_sum(x, at) / sqrt(segments._sizes(x, at, count))

    return _segment(rooted, data, indices, segment_ids, num_segments)

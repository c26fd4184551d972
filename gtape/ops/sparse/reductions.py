"""Sums, maxima and softmax of SparseTensors; sums and means of rows of a table, picked by index or
by the ids of a SparseTensor or RaggedTensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import normal_axes
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops.arguments import as_int, axes_of, host
from gtape.ops.control.selection import where
from gtape.ops.elementwise.operators import divide_no_nan
from gtape.ops.elementwise.scalars import exp, sqrt, square
from gtape.ops.indexing import segments
from gtape.ops.indexing.gathering import embedding_lookup, gather, rows_or_zero_, scatter_rows_
from gtape.ops.indexing.segments import segment_extreme_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import ones, zeros
from gtape.ops.shape.identity import stop_gradient
from gtape.ops.shape.layout import expand_dims, reshape_
from gtape.ops.shape.packing import concat
from gtape.ops.shape.padding import pad
from gtape.ops.sparse import tensor as tensors
from gtape.ops.sparse.layout import reshape, retain
from gtape.ops.sparse.tensor import SparseTensor, placed, sparse, values_in_rows


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
        (keys,) = tensors.keys_of(tuple(x._lengths[a] for a in left), rows)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        ids, count = placed(inverse.reshape(-1).astype(np.int64), x.values), len(first)
        # `first` is of sorted keys: the indices of the result come in row-major order.
        at = host(tensors.columns_(x.indices, axes=columns))[first]
        return SparseTensor._of_rows(at, _segments(name, x.values, ids, count), shape)
    ids = tensors.cells_(x.indices, shape=x._lengths, axes=left)
    return reshape_(_segments(name, x.values, ids, math.prod(shape)), shape=shape)


def _segments(name: str, values: Tensor, ids: Tensor, count: int) -> Tensor:
    if name == "reduce_sum":
        return scatter_rows_(values, ids, rows=count)
    return segment_extreme_(values, ids, count=count, largest=True, zeros=True)


def reduce_sum(sp_input: SparseTensor, axis: IntsLike | None = None, keepdims: bool | None = None,
               output_is_sparse: bool = False, name: str | None = None) -> Tensor | SparseTensor:
    """Σ over `axis` (all axes when None): dense, or a SparseTensor if `output_is_sparse`. Raises
    InvalidArgumentError: no such axis."""
    return _reduced("reduce_sum", sparse(sp_input, "reduce_sum"), axis, keepdims, output_is_sparse)


def reduce_max(sp_input: SparseTensor, axis: IntsLike | None = None, keepdims: bool | None = None,
               output_is_sparse: bool = False, name: str | None = None) -> Tensor | SparseTensor:
    """The largest of the values over `axis`, what is not there left out; 0 where there is none.
    Dense, or a SparseTensor if `output_is_sparse`. Ties share the gradient. Raises
    InvalidArgumentError: no such axis, or values that are no real numbers."""
    return _reduced("reduce_max", sparse(sp_input, "reduce_max"), axis, keepdims, output_is_sparse)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax over the values of the last axis, what is not there left out. Raises ValueError:
    fewer than two axes."""
    x = sparse(sp_input, "softmax")
    if len(x._lengths) < 2:
        raise ValueError(f"tf.sparse.softmax takes two axes or more; got {list(x.shape)}")
    rows = host(x.indices)[:, :-1]
    (keys,) = tensors.keys_of(x._lengths[:-1], rows)
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


_COMBINERS = ("mean", "sqrtn", "sum")


def embedding_lookup_sparse(params: TensorLike, sp_ids: CompositeTensor, sp_weights: object,
                            combiner: str | None = None, max_norm: Any = None,
                            name: str | None = None, allow_fast_lookup: bool = False) -> Tensor:
    """y[r] = Σ w · params[id] over the ids of row r, divided by Σ w ("mean") or √Σ w² ("sqrtn").

    The rows go as far as the last that has an id; one without ids is 0.

    Args:
        params: the table [rows, …].
        sp_ids: a SparseTensor or RaggedTensor of ids.
        sp_weights: one of the same shape, of weights; None for 1.
        combiner: "mean" unless given, "sqrtn" or "sum".
        max_norm: rows of the table that are longer are scaled to it.

    Raises:
        InvalidArgumentError: an id out of range, weights that do not fit.
        ValueError: another combiner.
    """
    name = "embedding_lookup_sparse"
    how = "mean" if combiner is None else combiner
    if how not in _COMBINERS:
        raise ValueError(f"{name}: combiner must be one of {', '.join(_COMBINERS)}; got "
                         f"{shown(combiner)}")
    parts = values_in_rows(sp_ids)
    if parts is None:
        raise TypeError(f"{name} takes a SparseTensor or RaggedTensor of ids; got a "
                        f"{type(sp_ids).__name__}. Use tf.nn.embedding_lookup")
    ids, owner, _ = parts
    # As in TensorFlow, where the rows are segments: those after the last id are not there. `safe_`
    # adds them.
    count = int(owner[-1]) + 1 if len(owner) else 0
    segments = placed(owner.astype(np.int64), ids)
    rows = embedding_lookup(params, ids, max_norm=max_norm)
    weights = _weights(name, sp_weights, ids, rows)
    total = scatter_rows_(rows * weights, segments, rows=count)
    if how == "sum":
        return total
    if how == "mean":
        return divide_no_nan(total, scatter_rows_(weights, segments, rows=count))
    return divide_no_nan(total, sqrt(scatter_rows_(square(weights), segments, rows=count)))


def _weights(name: str, sp_weights: Any, ids: Tensor, rows: Tensor) -> Tensor:
    """A weight for each row found, with axes of length 1."""
    shape = (*ids.spec.shape, *(1,) * (rows.ndim - 1))
    if sp_weights is None:
        return ones(shape, rows.dtype)
    values = sp_weights.values if isinstance(sp_weights, SparseTensor) else sp_weights.flat_values
    if values.spec.shape != ids.spec.shape:
        raise InvalidArgumentError(f"{name}: there must be one weight for each id; got "
                                   f"{values.spec} beside {ids.spec}")
    return reshape_(cast(values, rows.dtype), shape=shape)


def safe_embedding_lookup_sparse(embedding_weights: TensorLike, sparse_ids: Any,
                                 sparse_weights: Any = None, combiner: str = "mean",
                                 default_id: int | None = None, max_norm: Any = None,
                                 name: str | None = None) -> Tensor:
    """`embedding_lookup_sparse` where negative ids, and weights that are not positive, are left
    out, and a row without ids is row `default_id` of the table, or 0. A row is what the last axis
    of the ids holds; the others are those of the result. Raises InvalidArgumentError: as
    `embedding_lookup_sparse`."""
    ids, weights = sparse_ids, sparse_weights
    if hasattr(ids, "row_splits"):
        ids, weights = ids.to_sparse(), None if weights is None else weights.to_sparse()
    if not isinstance(ids, SparseTensor):
        raise TypeError(f"safe_embedding_lookup_sparse takes a SparseTensor or RaggedTensor of "
                        f"ids; got a {type(ids).__name__}")
    lead = ids._lengths[:-1]
    if len(lead) != 1:
        whole = (math.prod(lead), ids._lengths[-1])
        ids, weights = reshape(ids, whole), weights and reshape(weights, whole)
    kept = host(ids.values) >= 0
    # TensorFlow prunes weights that are not positive for means alone: a sum may have negative ones.
    if weights is not None and combiner != "sum":
        kept &= host(weights.values) > 0
    ids = retain(ids, kept)
    weights = None if weights is None else retain(weights, kept)
    embedded = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    rows = ids._lengths[0]
    lacking = rows - embedded.spec.shape[0]
    if lacking:
        embedded = concat([embedded, zeros((lacking, *embedded.spec.shape[1:]), embedded.dtype)], 0)
    if default_id is not None:
        embedded = _filled(embedded, ids, embedding_lookup(embedding_weights, default_id,
                                                           max_norm=max_norm))
    return reshape_(embedded, shape=(*lead, *embedded.spec.shape[1:]))


def _filled(embedded: Tensor, ids: SparseTensor, default: Tensor) -> Tensor:
    """`found` with `default` in the rows without ids."""
    rows = embedded.spec.shape[0]
    empty = np.ones(rows, bool)
    empty[host(ids.indices)[:, 0]] = False
    chosen = placed(empty.reshape(rows, *(1,) * (embedded.ndim - 1)), embedded)
    return where(chosen, expand_dims(default, 0), embedded)

"""embedding_lookup_sparse: sums and means of rows of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import host
from gtape.ops.control.selection import where
from gtape.ops.elementwise.operators import divide_no_nan
from gtape.ops.elementwise.scalars import sqrt, square
from gtape.ops.indexing.gathering import embedding_lookup, scatter_rows_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import ones, zeros
from gtape.ops.shape.layout import expand_dims, reshape_
from gtape.ops.shape.packing import concat
from gtape.ops.sparse.layout import reshape, retain
from gtape.ops.sparse.tensor import SparseTensor, placed

_COMBINERS = ("mean", "sqrtn", "sum")


def _ids(name: str, sp_ids: Any) -> tuple[Tensor, np.ndarray]:
    """The ids and the row of each."""
    if isinstance(sp_ids, SparseTensor):
        return sp_ids.values, host(sp_ids.indices)[:, 0]
    if hasattr(sp_ids, "row_splits"):
        return sp_ids.flat_values, host(sp_ids.value_rowids())
    raise TypeError(f"{name} takes a SparseTensor or RaggedTensor of ids; got a "
                    f"{type(sp_ids).__name__}. Use tf.nn.embedding_lookup")


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
    ids, owner = _ids(name, sp_ids)
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
    out, and a row without ids is row `default_id` of the table, or 0.

    A row is what the last axis of the ids holds; the others are those of the result.

    Raises:
        InvalidArgumentError: as `embedding_lookup_sparse`.
    """
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

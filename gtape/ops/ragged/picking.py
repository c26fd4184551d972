"""Rows and values picked from RaggedTensors, or by ragged indices: gather, masks, positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.ragged.conversions import of_dense, places
from gtape.ops.ragged.elementwise import applied, loose, mapped, taken
from gtape.ops.ragged.partition import ends_of, host
from gtape.ops.ragged.ragged_tensor import RaggedTensor, count_of
from gtape.ops.shape.layout import reshape_


def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
           batch_dims: Any = 0, name: str | None = None) -> Any:
    """Slices of `params` at `indices`; either may be ragged.

    Raises:
        InvalidArgumentError: an index out of range, or indices that are no integers.
        ValueError: ragged params with an axis other than the first after the batch.
    """
    batch = as_int(batch_dims, "gather: batch_dims")
    at = batch if axis is None else as_int(axis, "gather: axis")
    if isinstance(indices, RaggedTensor) and not isinstance(params, RaggedTensor):
        x = convert(params)
        at = at + x.ndim if at < 0 else at
        if batch == 0:
            return _by_ragged(x, indices, at)
        params = of_dense(x, 1)
    if at != batch:
        raise ValueError(f"gather: of RaggedTensors rows are gathered; axis must be batch_dims, "
                         f"{batch}; got {at}")
    index = indices if isinstance(indices, RaggedTensor) else convert(indices)
    if not index.dtype.is_integer:
        raise InvalidArgumentError(f"gather: indices must be integers; got {index.dtype.name}")
    if batch:
        return _batched(params, index, batch)
    if isinstance(index, RaggedTensor):
        return index.with_flat_values(gather(params, index.flat_values))
    return _rows(params, index)


def _checked(index: np.ndarray, count: int) -> np.ndarray:
    if index.size and (index.min() < 0 or index.max() >= count):
        raise InvalidArgumentError(f"gather: the indices must be in [0, {count}); got "
                                   f"{int(index.min())} to {int(index.max())}")
    return index.astype(np.int64)


def _rows(params: Any, index: Tensor) -> Any:
    """Rows at a dense index of any rank."""
    numbers = _checked(host(index), count_of(params))
    if not numbers.ndim:
        return params[int(numbers)]
    made = taken(params, numbers.reshape(-1))
    for axis in range(numbers.ndim - 1, 0, -1):
        rows = math.prod(numbers.shape[:axis])
        made = RaggedTensor._made(made, np.arange(rows + 1) * numbers.shape[axis])
    return loose(made)


def _by_ragged(x: Tensor, indices: RaggedTensor, axis: int) -> Any:
    """Slices of a dense tensor at ragged indices, whose rows stand in the place of `axis`."""
    from gtape.ops.indexing.gathering import gather

    flat = gather(x, indices.flat_values, axis=axis)
    if axis == 0:
        return indices.with_flat_values(flat)
    lead = x.spec.shape[:axis]
    count, inner = math.prod(lead), flat.spec.shape[axis:]
    values: Any = reshape_(flat, shape=(count * inner[0], *inner[1:]))
    levels: list[np.ndarray] = []
    level: Any = indices
    while isinstance(level, RaggedTensor):
        levels.append(np.diff(level._host()))
        level = level.values
    for lengths in levels[::-1]:
        values = RaggedTensor._made(values, ends_of(np.tile(lengths, count)))
    made = values
    for length, at in ((indices._count(), axis), *((lead[a], a) for a in range(axis - 1, 0, -1))):
        rows = math.prod(lead[:at])
        made = RaggedTensor._made(made, np.arange(rows + 1) * length, length)
    return made


def _batched(params: Any, index: Any, batch: int) -> Any:
    """Gathered within each batch: from all batches laid end to end."""
    params = of_dense(params, 1)
    rows = params._count()
    if count_of(index) != rows:
        raise InvalidArgumentError(f"gather: the first {batch} axes of params and indices must be "
                                   f"equal; got {params.shape} and {index.shape}")
    if batch > 1:
        inner = of_dense(index, 1)
        return inner.with_values(_batched(params.values, inner.values, batch - 1))
    starts, lengths = params._host()[:-1], np.diff(params._host())

    def moved(flat: Tensor, owner: np.ndarray) -> Tensor:
        numbers = host(flat)
        if ((numbers < 0) | (numbers >= lengths[owner])).any():
            raise InvalidArgumentError("gather: an index is outside its row")
        return convert(numbers + starts[owner], None, flat._t.device)

    if not isinstance(index, RaggedTensor):
        owner = np.arange(rows).reshape(rows, *(1,) * (index.ndim - 1))
        return gather(params.values, moved(index, np.broadcast_to(owner, index.spec.shape)))
    owner, level = np.arange(rows), index
    while isinstance(level, RaggedTensor):
        owner = np.repeat(owner, np.diff(level._host()))
        level = level.values
    shape = level.spec.shape
    spread = np.broadcast_to(owner.reshape(-1, *(1,) * (len(shape) - 1)), shape)
    return gather(params.values, index.with_flat_values(moved(level, spread)))


def ragged_mask(data: Any, mask: Any) -> Any:
    """See `tf.ragged.boolean_mask`."""
    chosen = mask if isinstance(mask, RaggedTensor) else convert(mask)
    if not chosen.dtype.is_bool:
        raise ValueError(f"boolean_mask: the mask must be bool; got {chosen.dtype.name}")
    rank = chosen.ragged_rank + chosen.flat_values.ndim if isinstance(
        chosen, RaggedTensor) else chosen.ndim
    if not rank:
        raise ValueError("boolean_mask: the mask must not be a scalar")
    x = data if isinstance(data, RaggedTensor) else convert(data)
    if (x.ragged_rank + x.flat_values.ndim if isinstance(x, RaggedTensor) else x.ndim) < rank:
        raise ValueError(f"boolean_mask: data must have as many axes as the mask, {rank}; got "
                         f"{x.shape}")
    return _masked(x, chosen, rank)


def _masked(x: Any, mask: Any, rank: int) -> Any:
    if rank == 1:
        true = host(mask)
        if len(true) != count_of(x):
            raise ValueError(f"boolean_mask: there must be one bool for each of {count_of(x)} "
                             f"values; got {len(true)}")
        return loose(taken(x, np.flatnonzero(true)))
    rows, bools = of_dense(x, 1), of_dense(mask, 1)
    if not np.array_equal(rows._host(), bools._host()):
        raise ValueError(f"boolean_mask: the rows of data and mask must have equal lengths; got "
                         f"{shown(x)} and {shown(mask)}")
    inner = _masked(rows.values, bools.values, rank - 1)
    if rank > 2:
        return rows._with(inner)
    kept = np.concatenate([[0], np.cumsum(host(bools.values))])
    return RaggedTensor._made(inner, kept[bools._host()])


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """The positions of what is true, [n, rank]; with x and y, x where it is true, else y."""
    from gtape.ops.control.selection import where

    if x is None and y is None:
        found = where(condition.flat_values)
        numbers = host(found)
        at = places(condition)[numbers[:, 0]]
        return convert(np.concatenate([at, numbers[:, 1:]], 1).astype(np.int64), None,
                       found._t.device)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    if not isinstance(condition, RaggedTensor):
        chosen = convert(condition)
        whole = x if isinstance(x, RaggedTensor) else y
        if chosen.ndim == 1:  # rows are chosen
            chosen = reshape_(chosen, shape=(chosen.spec.shape[0],
                                             *(1,) * (whole.ragged_rank + whole.flat_values.ndim
                                                      - 1)))
        condition = chosen
    like = next(v for v in (x, y, condition) if (hasattr(v, "dtype") and v is not condition)
                or v is condition)
    pair = [v if hasattr(v, "dtype") else convert(v, None if like is condition else like.dtype)
            for v in (x, y)]
    return applied("where", where, (condition, *pair))


def one_hot(indices: Any, *args: Any, **kwargs: Any) -> Any:
    from gtape.ops.shape.creation import one_hot

    if not isinstance(indices, RaggedTensor):
        raise TypeError(f"one_hot: on_value and off_value must be dense scalars beside "
                        f"{shown(indices)}; got a RaggedTensor")
    axis = kwargs.get("axis")
    if axis not in (None, -1):
        raise ValueError(f"one_hot: of RaggedTensors the new axis is the last; got "
                         f"axis={shown(axis)}")
    return mapped(one_hot, indices, *args, **kwargs)

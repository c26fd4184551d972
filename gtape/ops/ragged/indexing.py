"""Rows and values picked from RaggedTensors, or by ragged indices: x[…], gather, masks, where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops.arguments import as_int, host
from gtape.ops.control import selection
from gtape.ops.indexing import gathering
from gtape.ops.ragged.conversions import expanded, of_dense, places, uniform_rows
from gtape.ops.ragged.elementwise import applied, loose, mapped, taken
from gtape.ops.ragged.partition import ends_of, within
from gtape.ops.ragged.ragged_tensor import RaggedTensor, count_of, rank_of
from gtape.ops.shape import creation
from gtape.ops.shape.layout import reshape_


def item(x: RaggedTensor, key: object) -> Tensor | RaggedTensor:
    """x[key]: integers for the first axis and dense ones, slices, None and … for any. Raises
    ValueError: an integer for a ragged axis, more indices than axes; IndexError: no such row;
    TypeError: something else as an index."""
    keys = list(key) if isinstance(key, tuple) else [key]
    rank = rank_of(x)
    given = sum(k is not None and k is not ... for k in keys)
    if given > rank or sum(k is ... for k in keys) > 1:
        raise ValueError(f"x[…]: too many indices for a RaggedTensor of rank {rank}: {shown(key)}")
    if any(k is ... for k in keys):
        at = next(i for i, k in enumerate(keys) if k is ...)
        keys[at:at + 1] = [slice(None)] * (rank - given)
    return _outer(x, [_plain(k) for k in keys])


def _plain(key: object) -> int | slice | None:
    if key is None:
        return None
    if isinstance(key, slice):
        return slice(*(None if v is None else as_int(v, "x[…]: a bound of a slice")
                       for v in (key.start, key.stop, key.step)))
    if isinstance(key, (Tensor, Variable)) or hasattr(key, "__index__"):
        return as_int(key, "x[…]: an index of a RaggedTensor")
    raise TypeError(f"x[…]: an index of a RaggedTensor must be an int, a slice, … or None; got "
                    f"{shown(key)}. For a list of rows write tf.gather")


def _outer(x: Any, keys: list[Any]) -> Any:
    """x[keys], whose first key is for the rows of x."""
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    key, *rest = keys
    if key is None:
        return expanded(_outer(x, rest), 0)
    ends, rows = x._host(), x._count()
    if isinstance(key, int):
        at = key + rows if key < 0 else key
        if not 0 <= at < rows:
            raise IndexError(f"x[…]: the index {key} is outside the {rows} rows")
        row = slice(int(ends[at]), int(ends[at + 1]))
        return _outer(_outer(x.values, [row]), rest)
    if key.step == 0:
        raise ValueError("x[…]: the step of a slice must not be 0")
    start, stop, step = key.indices(rows)
    # x[:, k] and the like: all rows, which need no gather.
    if (start, stop, step) == (0, rows, 1):
        return _inner(x, rest)
    return _inner(taken(x, np.arange(start, stop, step)), rest)


def _inner(x: RaggedTensor, keys: list[Any]) -> Any:
    """x[:, keys], whose first key is for what is in each row."""
    if not keys:
        return x
    key, *rest = keys
    if key is None:
        return expanded(_inner(x, rest), 1)
    if isinstance(key, int):
        return _column(x, key, rest)
    kept = x if key == slice(None) else _sliced(x, x._host(), key)
    if not rest:
        return kept
    if isinstance(x.values, RaggedTensor):
        return kept._with(_inner(kept.values, rest))
    return kept._with(kept.values[(slice(None), *rest)])


def _column(x: RaggedTensor, key: int, rest: list[object]) -> Any:
    """One value of each row, where all rows have one length."""
    if x._uniform is None:
        raise ValueError("x[…]: a ragged axis cannot be indexed with an integer, since some rows "
                         "may be too short; write a slice such as x[:, :1], or x.to_tensor()")
    at = key + x._uniform if key < 0 else key
    if not 0 <= at < x._uniform:
        raise IndexError(f"x[…]: the index {key} is outside the {x._uniform} values of each row")
    column = taken(x.values, x._host()[:-1] + at)
    if isinstance(column, RaggedTensor):
        return _inner(column, rest)
    return column[(slice(None), *rest)] if rest else column


def _sliced(x: RaggedTensor, ends: np.ndarray, key: slice) -> RaggedTensor:
    """The slice of every row."""
    lengths = np.diff(ends)
    step = 1 if key.step is None else key.step
    if step == 0:
        raise ValueError("x[…]: the step of a slice must not be 0")
    # Bounds are clipped to each row by itself, by the rules of `slice.indices`, for all rows at
    # once.
    lowest, highest = (0, lengths) if step > 0 else (-1, lengths - 1)

    def bound(given: int | None, default: Any) -> Any:
        if given is None:
            return np.broadcast_to(default, lengths.shape)
        at = given + lengths if given < 0 else np.full_like(lengths, given)
        return np.clip(at, lowest, highest)

    first, last = (lowest, highest) if step > 0 else (highest, lowest)
    start, stop = bound(key.start, first), bound(key.stop, last)
    # Division rounds down; of the negative it rounds up, which is how many steps fit.
    count = np.maximum(-((start - stop) // step) if step > 0 else -((stop - start) // -step), 0)
    index = np.repeat(ends[:-1] + start, count) + within(count) * step
    uniform = int(count[0]) if x._uniform is not None and len(count) else None
    return RaggedTensor._of_splits(taken(x.values, index), ends_of(count), uniform)


def gather(params: TensorLike, indices: object, validate_indices: object = None, axis: Any = None,
           batch_dims: Any = 0, name: str | None = None) -> Any:
    """Slices of `params` at `indices`; either may be ragged. Raises InvalidArgumentError: an index
    out of range, or indices that are no integers; ValueError: ragged params with an axis other than
    the first after the batch."""
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


def _rows(params: Any, index: Tensor) -> Any:
    """Rows at a dense index of any rank."""
    numbers, count = host(index), count_of(params)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise InvalidArgumentError(f"gather: the indices must be in [0, {count}); got "
                                   f"{int(numbers.min())} to {int(numbers.max())}")
    if not numbers.ndim:
        return params[int(numbers)]
    return loose(uniform_rows(taken(params, numbers.reshape(-1)), numbers.shape))


def _by_ragged(x: Tensor, indices: RaggedTensor, axis: int) -> RaggedTensor:
    """Slices of a dense tensor at ragged indices, whose rows stand in the place of `axis`."""
    flat = gathering.gather(x, indices.flat_values, axis=axis)
    if axis == 0:
        return indices.with_flat_values(flat)
    lead = x.spec.shape[:axis]
    count, inner = math.prod(lead), flat.spec.shape[axis:]
    values: Any = reshape_(flat, shape=(count * inner[0], *inner[1:]))
    for level in indices._levels()[::-1]:
        values = RaggedTensor._of_splits(values, ends_of(np.tile(np.diff(level._host()), count)))
    return uniform_rows(values, (*lead, indices._count()))


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

    # Checked before the start of the row is added: an index beyond its row would lie in the next
    # one.
    def moved(flat: Tensor, owner: np.ndarray) -> Tensor:
        numbers = host(flat)
        if ((numbers < 0) | (numbers >= lengths[owner])).any():
            raise InvalidArgumentError("gather: an index is outside its row")
        return convert(numbers + starts[owner], None, flat._t.device)

    if not isinstance(index, RaggedTensor):
        owner = np.arange(rows).reshape(rows, *(1,) * (index.ndim - 1))
        return gather(params.values, moved(index, np.broadcast_to(owner, index.spec.shape)))
    owner, flat = np.arange(rows), index.flat_values
    for level in index._levels():
        owner = np.repeat(owner, np.diff(level._host()))
    spread = np.broadcast_to(owner.reshape(-1, *(1,) * (flat.ndim - 1)), flat.spec.shape)
    return gather(params.values, index.with_flat_values(moved(flat, spread)))


def boolean_mask(data: TensorLike | CompositeTensor, mask: TensorLike | CompositeTensor,
                 name: str | None = None) -> Any:
    """The values where `mask` is true, in rows: with a mask of rank r, of r - 1 ragged axes. Raises
    ValueError: a scalar mask, or one that is not bool or does not fit."""
    chosen = mask if isinstance(mask, RaggedTensor) else convert(mask)
    if not chosen.dtype.is_bool:
        raise ValueError(f"boolean_mask: the mask must be bool; got {chosen.dtype.name}")
    rank = rank_of(chosen)
    if not rank:
        raise ValueError("boolean_mask: the mask must not be a scalar")
    x = data if isinstance(data, RaggedTensor) else convert(data)
    if rank_of(x) < rank:
        raise ValueError(f"boolean_mask: data must have as many axes as the mask, {rank}; got "
                         f"{x.shape}")
    return _masked(x, chosen, rank)


def _masked(x: TensorLike | CompositeTensor, mask: Any, rank: int) -> Tensor | RaggedTensor:
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
    # How many were kept before each place: at the old ends of rows these are the new ends.
    kept = np.concatenate([[0], np.cumsum(host(bools.values))])
    return RaggedTensor._of_splits(inner, kept[bools._host()])


def where(condition: Any, x: TensorLike | None = None, y: TensorLike | None = None,
          name: str | None = None) -> Any:
    """The positions of what is true, [n, rank]; with x and y, x where it is true, else y."""
    if x is None and y is None:
        true = selection.where(condition.flat_values)
        numbers = host(true)
        at = places(condition)[numbers[:, 0]]
        return convert(np.concatenate([at, numbers[:, 1:]], 1).astype(np.int64), None,
                       true._t.device)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither")
    if not isinstance(condition, RaggedTensor):
        chosen = convert(condition)
        whole = x if isinstance(x, RaggedTensor) else y
        if chosen.ndim == 1:  # rows are chosen
            chosen = reshape_(chosen, shape=(*chosen.spec.shape, *(1,) * (rank_of(whole) - 1)))
        condition = chosen
    like = next((v for v in (x, y) if hasattr(v, "dtype")), condition)
    pair = [v if hasattr(v, "dtype") else convert(v, None if like is condition else like.dtype)
            for v in (x, y)]
    return applied("where", selection.where, (condition, *pair))


def one_hot(indices: TensorLike, *args: object, **kwargs: object) -> Any:
    if not isinstance(indices, RaggedTensor):
        raise TypeError(f"one_hot: on_value and off_value must be dense scalars beside "
                        f"{shown(indices)}; got a RaggedTensor")
    axis = kwargs.get("axis")
    if axis not in (None, -1):
        raise ValueError(f"one_hot: of RaggedTensors the new axis is the last; got "
                         f"axis={shown(axis)}")
    return mapped(creation.one_hot, indices, *args, **kwargs)

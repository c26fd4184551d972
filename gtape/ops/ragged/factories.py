"""tf.ragged: RaggedTensors of lists and of ranges; row splits and the rows of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, SupportsIndex

import numpy as np

from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, float32, float64, int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_function, as_int, as_ints, as_items, host, index_tensor
from gtape.ops.ragged import partition as parts
from gtape.ops.ragged.elementwise import same_rows, taken
from gtape.ops.ragged.partition import ends_of, row_ids_, within
from gtape.ops.ragged.ragged_tensor import RaggedTensor, count_of, values_of
from gtape.ops.shape.casting import cast
from gtape.ops.sparse.combining import combined, hashed, hashing, text_of

#: Deeper lists are mistakes, such as one that holds itself, and would end in a RecursionError.
_DEEPEST = 64


def _is_list(value: TensorLike) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _depths(value: Any, depth: int, leaves: set[int], empties: set[int]) -> None:
    """Note how deep scalars and empty lists lie."""
    if not _is_list(value):
        leaves.add(depth)
        return
    if depth == _DEEPEST:
        raise ValueError(f"ragged.constant: lists may nest {_DEEPEST} deep; got {shown(value)}")
    # An array says its depth by its axes: its elements need not be gone through one by one.
    if isinstance(value, np.ndarray) and value.dtype != object:
        (leaves if value.size else empties).add(depth + value.ndim)
        return
    if not len(value):
        empties.add(depth + 1)
    for item in value:
        _depths(item, depth + 1, leaves, empties)


def constant(pylist: Any, dtype: object = None, ragged_rank: int | None = None,
             inner_shape: object = None, name: str | None = None,
             row_splits_dtype: DTypeLike = int64) -> Any:
    """The RaggedTensor of nested lists; a dense tensor where no axis is ragged.

    Args:
        dtype: of the values; as in tf.constant unless given.
        ragged_rank: how many axes are ragged; all but the first, and those of `inner_shape`,
            unless given.
        inner_shape: the shape of the innermost dense values; () unless given.

    Raises:
        ValueError: scalars at different depths, or no such ragged_rank or inner_shape.
        TypeError: values that do not fit `dtype`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    leaves, empties = set[int](), set[int]()
    _depths(pylist, 0, leaves, empties)
    if len(leaves) > 1 or (leaves and max(empties, default=0) > max(leaves)):
        raise ValueError(f"ragged.constant: all scalars must lie equally deep in the lists; got "
                         f"{shown(pylist)}")
    depth = max(leaves, default=max(empties, default=0))
    inner = None if inner_shape is None else as_ints(inner_shape, "ragged.constant: inner_shape")
    rank = max(0, depth - 1 - len(inner or ()))
    if ragged_rank is not None:
        rank = as_int(ragged_rank, "ragged.constant: ragged_rank")
        if rank < 0 or (leaves and rank >= max(depth, 1)):
            raise ValueError(f"ragged.constant: ragged_rank={rank} needs lists that nest "
                             f"{rank + 1} deep or more; got {depth}")
    splits, flat = [], pylist
    for _ in range(rank):
        if not all(map(_is_list, flat)):
            raise ValueError(f"ragged.constant: there must be lists {rank + 1} deep; got "
                             f"{shown(pylist)}")
        splits.append(ends_of(np.array([len(row) for row in flat], np.int64)))
        flat = [item for row in flat for item in row]
    rows: Any = _innermost(flat, wanted, inner, rank, depth)
    rows = reduce(RaggedTensor._of_splits, splits[::-1], rows)
    return rows if not rank else rows.with_row_splits_dtype(
        int64 if row_splits_dtype is None else row_splits_dtype)


def _innermost(flat: TensorLike, dtype: Any, inner: tuple[int, ...] | None, rank: int, depth: int,
               ) -> Tensor:
    if isinstance(flat, list) and not flat:
        shape = (0, *(inner or (0,) * max(depth - rank - 1, 0)))
        return convert(np.zeros(shape, (dtype or float32).as_numpy_dtype), dtype)
    try:
        values = convert(flat, dtype)
    except TypeError as error:
        if dtype is not None:
            raise
        raise ValueError(f"ragged.constant: {error}") from None
    if inner is not None and tuple(values.spec.shape[1 if rank else 0:]) != inner and (
            tuple(values.spec.shape[1:]) != inner):
        raise ValueError(f"ragged.constant: the innermost values must have the shape "
                         f"{list(inner)}; got {list(values.spec.shape[1:])}")
    return values


def range_(starts: TensorLike, limits: TensorLike | None = None, deltas: SupportsIndex = 1,
           dtype: object = None, name: str | None = None, row_splits_dtype: Any = int64,
           ) -> RaggedTensor:
    """Row i is starts[i], starts[i] + deltas[i], … before limits[i]; scalars serve every row. With
    one argument the rows begin with 0. Raises InvalidArgumentError: a delta of 0, more than one
    axis, or lengths that differ."""
    if limits is None:
        starts, limits = 0, starts
    given = [convert(v) for v in (starts, limits, deltas)]
    kinds = [g.dtype for g, v in zip(given, (starts, limits, deltas))
             if isinstance(v, Tensor)] or [g.dtype for g in given]
    if any(not (g.dtype.is_integer or g.dtype.is_floating) for g in given):
        raise InvalidArgumentError(f"ragged.range takes real numbers; got "
                                   f"{', '.join(str(g.spec) for g in given)}")
    wanted = as_dtype(dtype) if dtype is not None else next(
        kind for kind in (float64, float32, int64, int32) if kind in (*kinds, int32))
    first, last, step = (host(g).astype(wanted.np_dtype) for g in given)
    if max(first.ndim, last.ndim, step.ndim) > 1:
        raise InvalidArgumentError("ragged.range takes scalars and vectors")
    try:
        first, last, step = np.broadcast_arrays(*map(np.atleast_1d, (first, last, step)))
    except ValueError:
        raise InvalidArgumentError("ragged.range: starts, limits and deltas must have one length; "
                                   f"got {[host(g).size for g in given]}") from None
    if (step == 0).any():
        raise InvalidArgumentError("ragged.range: deltas must not be 0")
    steps = _steps(first, last, step)
    with room_for("ragged.range", Spec((sum(steps),), wanted)):
        count = np.array(steps, np.int64)
        values = np.repeat(first, count) + within(count) * np.repeat(step, count)
        rows = RaggedTensor._of_splits(convert(values.astype(wanted.np_dtype)), ends_of(count))
        return rows.with_row_splits_dtype(row_splits_dtype)


def _steps(first: np.ndarray, last: np.ndarray, step: np.ndarray) -> list[int]:
    # Python's integers: their sum may be beyond int64, which `room_for` refuses.
    if first.dtype.kind in "iu":
        return [len(range(int(a), int(b), int(c))) for a, b, c in zip(first, last, step)]
    counts = np.maximum(np.ceil((last - first) / step), 0)
    if not np.isfinite(counts).all():
        raise InvalidArgumentError("ragged.range: starts, limits and deltas must be finite")
    return list(map(int, counts))


def map_flat_values(op: Callable[..., object], *args: Any, **kwargs: Any) -> Any:
    """`op` of the flat values of the RaggedTensors among the arguments, in their rows. Raises
    ValueError: their rows differ, or `op` gives another number of values."""
    operands: list[RaggedTensor] = []

    def bare(value: TensorLike | CompositeTensor) -> Any:
        if isinstance(value, RaggedTensor):
            operands.append(value)
            return value.flat_values
        if isinstance(value, list) and any(isinstance(v, RaggedTensor) for v in value):
            return [bare(v) for v in value]
        return value

    as_function(op, "map_flat_values: op")
    flat, named = [bare(v) for v in args], {key: bare(v) for key, v in kwargs.items()}
    if not operands:
        return op(*args, **kwargs)
    first = operands[0]
    for other in operands[1:]:
        if not same_rows(first, other):
            raise ValueError(f"map_flat_values takes RaggedTensors of the same rows; got "
                             f"{shown(first)} and {shown(other)}")
    # On all values at once, in whatever rows they are: this is what makes it fast, and what an `op`
    # that looks along rows must not be given.
    result = op(*flat, **named)
    if not isinstance(result, (Tensor, RaggedTensor)):
        result = convert(result)
    shape = result.shape
    if not shape.rank or shape[0] != first.flat_values.spec.shape[0]:
        raise ValueError(f"map_flat_values: op must give as many values as it gets, "
                         f"{first.flat_values.spec.shape[0]}; got the shape {shape}")
    return first.with_flat_values(result)


def row_splits_to_segment_ids(splits: TensorLike, name: str | None = None, out_type: object = None,
                              ) -> Tensor:
    """The row of each value, of row splits. Raises ValueError: they are no vector of int32 or
    int64, or empty."""
    ends = parts.integers(splits, "splits")
    parts.check_splits(ends, None)
    ids = row_ids_(ends, count=int(host(ends)[-1]))
    return ids if out_type is None else cast(ids, as_dtype(out_type))


def segment_ids_to_row_splits(segment_ids: TensorLike, num_segments: int | None = None,
                              out_type: object = None, name: str | None = None) -> Tensor:
    """Row splits, of the row of each value. Raises as `tf.RaggedTensor.from_value_rowids`."""
    ends = parts.of_value_rowids(segment_ids, num_segments)
    return ends if out_type is None else cast(ends, as_dtype(out_type))


def stack_dynamic_partitions(data: TensorLike, partitions: TensorLike, num_partitions: int,
                             name: str | None = None) -> RaggedTensor:
    """Row p has the rows of `data` whose partition is p, in order. Raises InvalidArgumentError:
    partitions outside [0, num_partitions), or not one for each row."""
    values = values_of(data)
    owner = host(index_tensor(partitions, "stack_dynamic_partitions", convert(0)))
    count = as_int(num_partitions, "stack_dynamic_partitions: num_partitions")
    if owner.ndim != 1 or len(owner) != count_of(values) or (
            owner.size and (owner.min() < 0 or owner.max() >= count)):
        raise InvalidArgumentError(f"stack_dynamic_partitions: partitions must be in [0, {count}), "
                                   f"one for each of {count_of(values)} rows; got {shown(owner)}")
    # Stable: the rows of a partition stay in the order in which they came.
    order = np.argsort(owner, kind="stable")
    with room_for("stack_dynamic_partitions", Spec((count + 1,), int64)):
        ends = ends_of(np.bincount(owner, minlength=count))
    return RaggedTensor._of_splits(taken(values, order), ends)


def _crossed(rows: list[list[Any]], values: np.ndarray) -> RaggedTensor:
    return RaggedTensor._of_splits(convert(values), ends_of(np.array([len(r) for r in rows])))


def cross(inputs: TensorLike, name: str | None = None) -> RaggedTensor:
    """`tf.sparse.cross` of RaggedTensors, matrices and SparseTensors, in rows."""
    rows = combined("ragged.cross", as_items(inputs, "ragged.cross: inputs"))
    texts = [b"_X_".join(map(text_of, values)) for row in rows for values in row]
    # np.array(texts) would make strings of one fixed width, which lose NULs at their ends.
    array = np.empty(len(texts), object)
    array[:] = texts
    return _crossed(rows, array)


def cross_hashed(inputs: TensorLike, num_buckets: int = 0, hash_key: int | None = None,
                 name: str | None = None) -> RaggedTensor:
    """`tf.sparse.cross_hashed` of RaggedTensors, matrices and SparseTensors, in rows."""
    buckets, key = hashing(num_buckets, hash_key)
    rows = combined("ragged.cross_hashed", as_items(inputs, "ragged.cross_hashed: inputs"))
    hashes = [hashed(values, buckets, key) for row in rows for values in row]
    return _crossed(rows, np.array(hashes, np.int64))

"""tf.ragged: RaggedTensors of lists and of ranges; row splits and the rows of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32, int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_function, as_int, as_ints, as_items, index_tensor
from gtape.ops.ragged import partition as parts
from gtape.ops.ragged.partition import ends_of, host, row_ids_, spans
from gtape.ops.ragged.ragged_tensor import RaggedTensor, count_of, values_of

_DEEPEST = 64


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _depths(value: Any, depth: int, leaves: set[int], empties: set[int]) -> None:
    """Note how deep scalars and empty lists lie."""
    if not _is_list(value):
        leaves.add(depth)
        return
    if depth == _DEEPEST:
        raise ValueError(f"ragged.constant: lists may nest {_DEEPEST} deep; got {shown(value)}")
    if isinstance(value, np.ndarray) and value.dtype != object:
        (leaves if value.size else empties).add(depth + value.ndim)
        return
    if not len(value):
        empties.add(depth + 1)
    for item in value:
        _depths(item, depth + 1, leaves, empties)


def constant(pylist: Any, dtype: Any = None, ragged_rank: Any = None, inner_shape: Any = None,
             name: str | None = None, row_splits_dtype: Any = int64) -> Any:
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
    leaves: set[int] = set()
    empties: set[int] = set()
    _depths(pylist, 0, leaves, empties)
    if len(leaves) > 1 or (leaves and max(empties, default=0) > max(leaves)):
        raise ValueError(f"ragged.constant: all scalars must lie equally deep in the lists; got "
                         f"{shown(pylist)}")
    depth = max(leaves, default=max(empties, default=0))
    inner = None if inner_shape is None else as_ints(inner_shape, "ragged.constant: inner_shape")
    if ragged_rank is None:
        rank = max(0, depth - 1 - (0 if inner is None else len(inner)))
    else:
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
    values = _innermost(flat, wanted, inner, rank, depth)
    made: Any = values
    for ends in splits[::-1]:
        made = RaggedTensor._made(made, ends)
    splits_dtype = int64 if row_splits_dtype is None else row_splits_dtype
    return made if not rank else made.with_row_splits_dtype(splits_dtype)


def _innermost(flat: Any, dtype: Any, inner: tuple[int, ...] | None, rank: int, depth: int,
               ) -> Tensor:
    if isinstance(flat, list) and not flat:
        shape = (0, *(inner or (0,) * max(depth - rank - 1, 0)))
        return convert(np.zeros(shape, (dtype or float32).as_numpy_dtype), dtype)
    try:
        made = convert(flat, dtype)
    except TypeError as error:
        if dtype is not None:
            raise
        raise ValueError(f"ragged.constant: {error}") from None
    if inner is not None and tuple(made.spec.shape[1 if rank else 0:]) != inner and (
            tuple(made.spec.shape[1:]) != inner):
        raise ValueError(f"ragged.constant: the innermost values must have the shape "
                         f"{list(inner)}; got {list(made.spec.shape[1:])}")
    return made


def range_(starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None,
           name: str | None = None, row_splits_dtype: Any = int64) -> RaggedTensor:
    """Row i is starts[i], starts[i] + deltas[i], … before limits[i]; scalars serve every row.

    With one argument the rows begin with 0.

    Raises:
        InvalidArgumentError: a delta of 0, more than one axis, or lengths that differ.
    """
    if limits is None:
        starts, limits = 0, starts
    given = [convert(v) for v in (starts, limits, deltas)]
    kinds = [g.dtype for g, v in zip(given, (starts, limits, deltas)) if isinstance(v, Tensor)]
    if any(not (g.dtype.is_integer or g.dtype.is_floating) for g in given):
        raise InvalidArgumentError(f"ragged.range takes real numbers; got "
                                   f"{', '.join(str(g.spec) for g in given)}")
    wanted = as_dtype(dtype) if dtype is not None else _widest(kinds or [g.dtype for g in given])
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
    if wanted.is_integer:
        steps = [len(range(int(a), int(b), int(c))) for a, b, c in zip(first, last, step)]
    else:
        found = np.maximum(np.ceil((last - first) / step), 0).tolist()
        if not np.isfinite(found).all():
            raise InvalidArgumentError("ragged.range: starts, limits and deltas must be finite")
        steps = list(map(int, found))
    with room_for("ragged.range", Spec((sum(steps),), wanted)):
        return _ranges(first, step, np.array(steps, np.int64), wanted, row_splits_dtype)


def _ranges(first: np.ndarray, step: np.ndarray, count: np.ndarray, wanted: DType,
            row_splits_dtype: Any) -> RaggedTensor:
    within = spans(np.zeros(len(count), np.int64), count)
    values = np.repeat(first, count) + within * np.repeat(step, count)
    made = RaggedTensor._made(convert(values.astype(wanted.np_dtype)), ends_of(count))
    return made.with_row_splits_dtype(row_splits_dtype)


def _widest(kinds: Any) -> Any:
    for kind in ("float64", "float32", "int64", "int32"):
        if any(k.name == kind for k in kinds):
            return as_dtype(kind)
    return int32


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Tensors and RaggedTensors of one rank side by side along a new axis, rows of any lengths.

    Raises:
        ValueError: the ranks differ, there are none, or there is no such axis.
    """
    from gtape.ops.ragged import joining

    return joining.stack(values, axis)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The values where `mask` is true, in rows: with a mask of rank r, of r - 1 ragged axes.

    Raises:
        ValueError: a scalar mask, or one that is not bool or does not fit.
    """
    from gtape.ops.ragged.picking import ragged_mask

    return ragged_mask(data, mask)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the flat values of the RaggedTensors among the arguments, in their rows.

    Raises:
        ValueError: their rows differ, or `op` gives another number of values.
    """
    from gtape.ops.ragged.elementwise import same_rows

    found: list[RaggedTensor] = []

    def bare(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            found.append(value)
            return value.flat_values
        if isinstance(value, list) and any(isinstance(v, RaggedTensor) for v in value):
            return [bare(v) for v in value]
        return value

    as_function(op, "map_flat_values: op")
    flat, named = [bare(v) for v in args], {key: bare(v) for key, v in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    first = found[0]
    for other in found[1:]:
        if not same_rows(first, other):
            raise ValueError(f"map_flat_values takes RaggedTensors of the same rows; got "
                             f"{shown(first)} and {shown(other)}")
    made = op(*flat, **named)
    if not isinstance(made, (Tensor, RaggedTensor)):
        made = convert(made)
    shape = made.shape
    if not shape.rank or shape[0] != first.flat_values.spec.shape[0]:
        raise ValueError(f"map_flat_values: op must give as many values as it gets, "
                         f"{first.flat_values.spec.shape[0]}; got the shape {shape}")
    return first.with_flat_values(made)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of each value, of row splits.

    Raises:
        ValueError: they are no vector of int32 or int64, or empty.
    """
    from gtape.ops.shape.casting import cast

    found = parts.integers(splits, "splits")
    parts.check_splits(found, None)
    made = row_ids_(found, count=int(host(found)[-1]))
    return made if out_type is None else cast(made, as_dtype(out_type))


def segment_ids_to_row_splits(segment_ids: Any, num_segments: Any = None, out_type: Any = None,
                              name: str | None = None) -> Tensor:
    """Row splits, of the row of each value. Raises as `tf.RaggedTensor.from_value_rowids`."""
    from gtape.ops.shape.casting import cast

    made = parts.of_value_rowids(segment_ids, num_segments)
    return made if out_type is None else cast(made, as_dtype(out_type))


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any,
                             name: str | None = None) -> RaggedTensor:
    """Row p has the rows of `data` whose partition is p, in order.

    Raises:
        InvalidArgumentError: partitions outside [0, num_partitions), or not one for each row.
    """
    from gtape.ops.ragged.elementwise import taken

    values = values_of(data)
    owner = host(index_tensor(partitions, "stack_dynamic_partitions", convert(0)))
    count = as_int(num_partitions, "stack_dynamic_partitions: num_partitions")
    if owner.ndim != 1 or len(owner) != count_of(values) or (
            owner.size and (owner.min() < 0 or owner.max() >= count)):
        raise InvalidArgumentError(f"stack_dynamic_partitions: partitions must be in [0, {count}), "
                                   f"one for each of {count_of(values)} rows; got {shown(owner)}")
    order = np.argsort(owner, kind="stable")
    with room_for("stack_dynamic_partitions", Spec((count + 1,), int64)):
        ends = ends_of(np.bincount(owner, minlength=count))
    return RaggedTensor._made(taken(values, order), ends)


def _crossed(rows: list[list[Any]], values: np.ndarray) -> RaggedTensor:
    return RaggedTensor._made(convert(values), ends_of(np.array([len(r) for r in rows])))


def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """`tf.sparse.cross` of RaggedTensors, matrices and SparseTensors, in rows."""
    from gtape.ops.sparse.crossing import combined, text_of

    rows = combined("ragged.cross", as_items(inputs, "ragged.cross: inputs"))
    made = [b"_X_".join(map(text_of, values)) for row in rows for values in row]
    array = np.empty(len(made), object)
    array[:] = made
    return _crossed(rows, array)


def cross_hashed(inputs: Any, num_buckets: Any = 0, hash_key: Any = None,
                 name: str | None = None) -> RaggedTensor:
    """`tf.sparse.cross_hashed` of RaggedTensors, matrices and SparseTensors, in rows."""
    from gtape.ops.sparse.crossing import combined, hashed, hashing

    buckets, key = hashing(num_buckets, hash_key)
    rows = combined("ragged.cross_hashed", as_items(inputs, "ragged.cross_hashed: inputs"))
    made = [hashed(values, buckets, key) for row in rows for values in row]
    return _crossed(rows, np.array(made, np.int64))

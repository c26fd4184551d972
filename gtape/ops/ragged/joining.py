"""RaggedTensors joined, stacked, cut, repeated and given new axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.ops.arguments import as_int, as_ints, host_value
from gtape.ops.ragged.conversions import of_dense
from gtape.ops.ragged.elementwise import joined, loose, taken
from gtape.ops.ragged.partition import ends_of, spans
from gtape.ops.ragged.ragged_tensor import RaggedTensor


def _rank(x: Any) -> int:
    return x.ragged_rank + x.flat_values.ndim if isinstance(x, RaggedTensor) else x.ndim


def _axis(name: str, axis: Any, rank: int) -> int:
    at = as_int(axis, f"{name}: axis")
    if not -rank <= at < rank:
        raise ValueError(f"{name}: axis must be in [{-rank}, {rank}); got {at}")
    return at % rank


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A new axis of length 1 before axis `axis`."""
    return _expanded(input, _axis("expand_dims", axis, _rank(input) + 1))


def _expanded(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        from gtape.ops.shape.layout import expand_dims

        return expand_dims(x, axis)
    if axis == 0:
        return RaggedTensor._made(x, np.array([0, x._count()]), x._count())
    if axis == 1:
        return RaggedTensor._made(x, np.arange(x._count() + 1), 1)
    return x._with(_expanded(x.values, axis - 1))


def _values(name: str, values: Any) -> list[Any]:
    """Tensors and RaggedTensors, or one, as RaggedTensors of one ragged rank and dtype.

    Raises:
        ValueError: there are none, or their ranks differ.
        InvalidArgumentError: their dtypes differ.
    """
    parts = list(values) if isinstance(values, (list, tuple)) else [values]
    if not parts:
        raise ValueError(f"{name} takes at least one value; got an empty list")
    like = next((p.flat_values for p in parts if isinstance(p, RaggedTensor)), None)
    dtype = None if like is None else like.dtype
    found = [p if isinstance(p, RaggedTensor) else _converted(p, dtype) for p in parts]
    if len({_rank(p) for p in found}) != 1:
        raise ValueError(f"{name}: the values must have one rank; got "
                         f"{', '.join(str(p.shape) for p in found)}")
    if len({p.dtype for p in found}) != 1:
        raise InvalidArgumentError(f"{name}: the values must have one dtype; got "
                                   f"{', '.join(p.dtype.name for p in found)}")
    return found


def _converted(value: Any, dtype: Any) -> Any:
    from gtape.ops.ragged.factories import constant

    if isinstance(value, (list, tuple)):
        return constant(value, dtype)
    return convert(value)


def _leveled(parts: Sequence[Any], least: int) -> list[Any]:
    deepest = max([least, *(p.ragged_rank for p in parts if isinstance(p, RaggedTensor))])
    return [of_dense(p, min(deepest, _rank(p) - 1)) for p in parts]


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """One after another along `axis`, whose lengths may differ from row to row.

    Raises:
        ValueError: the ranks differ, or there is no such axis.
        InvalidArgumentError: the numbers of rows before that axis differ.
    """
    if isinstance(values, RaggedTensor):
        return values
    parts = _values("concat", values)
    return loose(_joined(parts, _axis("concat", axis, _rank(parts[0]))))


def _joined(parts: Sequence[Any], axis: int) -> Any:
    if not any(isinstance(p, RaggedTensor) for p in parts):
        if axis == 0 and len({tuple(p.spec.shape[1:]) for p in parts}) > 1:
            parts = _leveled(parts, 1)
        else:
            from gtape.ops.shape.packing import concat

            if axis == 0 or len({p.spec.shape[:axis] + p.spec.shape[axis + 1:]
                                 for p in parts}) == 1:
                return concat(list(parts), axis)
    parts = _leveled(parts, 1)
    if axis == 0:
        return joined(_one_level(parts))
    _check_rows([p._count() for p in parts])
    if axis == 1:
        lengths = np.stack([np.diff(p._host()) for p in parts], 1)
        whole = joined(_one_level([p.values for p in parts]))
        offsets = np.cumsum([0, *[p._host()[-1] for p in parts[:-1]]])
        starts = np.stack([p._host()[:-1] for p in parts], 1) + offsets
        index = spans(starts.reshape(-1), lengths.reshape(-1))
        return RaggedTensor._made(taken(whole, index), ends_of(lengths.sum(axis=1)))
    for other in parts[1:]:
        if not np.array_equal(other._host(), parts[0]._host()):
            raise InvalidArgumentError(f"concat: the rows before axis {axis} must have equal "
                                       f"lengths; got {shown(parts[0])} and {shown(other)}")
    return parts[0]._with(_joined([p.values for p in parts], axis - 1))


def _one_level(parts: Sequence[Any]) -> list[Any]:
    if not any(isinstance(p, RaggedTensor) for p in parts):
        return list(parts)
    return _leveled(parts, 1)


def _check_rows(counts: Sequence[int]) -> None:
    if len(set(counts)) != 1:
        raise InvalidArgumentError(f"concat: the values must have one number of rows; got "
                                   f"{list(counts)}")


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Side by side along a new axis. Raises as `concat`."""
    parts = _values("stack", values)
    at = _axis("stack", axis, _rank(parts[0]) + 1)
    if all(_rank(p) == 0 for p in parts):
        from gtape.ops.shape.packing import stack as dense

        return dense(parts, 0)
    return loose(_joined([_expanded(p, at) for p in parts], at))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """Repeated multiples[i] times along axis i.

    Raises:
        ValueError: there is not one number, 0 or more, for each axis.
    """
    counts = as_ints(multiples, "tile: multiples")
    if len(counts) != _rank(input) or min(counts) < 0:
        raise ValueError(f"tile: multiples must have a number of 0 or more for each axis of "
                         f"{input.shape}; got {list(counts)}")
    made = input
    for axis, count in enumerate(counts):
        if count != 1:
            made = _tiled(made, axis, count)
    return loose(made)


def _tiled(x: Any, axis: int, count: int) -> Any:
    if not isinstance(x, RaggedTensor):
        from gtape.ops.shape.arranging import tile

        return tile(x, [count if a == axis else 1 for a in range(x.ndim)])
    if axis > 1:
        return x._with(_tiled(x.values, axis - 1, count))
    ends = x._host()
    with room_for("tile", Spec((int(ends[-1] if axis else x._count()) * count,), x.dtype)):
        if axis == 0:
            return taken(x, np.tile(np.arange(x._count()), count))
        lengths = np.diff(ends)
        index = spans(np.repeat(ends[:-1], count), np.repeat(lengths, count))
        uniform = None if x._uniform is None else x._uniform * count
        return RaggedTensor._made(taken(x.values, index), ends_of(lengths * count), uniform)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """The order along these axes reversed; of a ragged one, that of each row."""
    made = tensor
    for a in as_ints(axis, "reverse: axis"):
        at = _axis("reverse", a, _rank(tensor))
        made = made[(*[slice(None)] * at, slice(None, None, -1))]
    return made


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:
    """Without the axes of length 1 given.

    Raises:
        ValueError: no axis is given, or one has another length.
    """
    if axis is None:
        raise ValueError("squeeze: the axes of a RaggedTensor must be given")
    made, rank = input, _rank(input)
    for at in sorted(_axis("squeeze", a, rank) for a in as_ints(axis, "squeeze: axis"))[::-1]:
        made = _squeezed(made, at)
    return made


def _squeezed(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        from gtape.ops.shape.layout import squeeze

        return squeeze(x, axis)
    if axis > 1:
        return x._with(_squeezed(x.values, axis - 1))
    lengths = np.array([x._count()]) if axis == 0 else np.diff(x._host())
    if (lengths != 1).any():
        raise ValueError(f"squeeze: axis {axis} of {x.shape} has lengths other than 1")
    return x.values if axis == 1 else x[0]


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None,
          name: str | None = None) -> list[Any]:
    """Cut along the first axis into equal parts, or into parts of these sizes.

    Raises:
        ValueError: another axis.
        InvalidArgumentError: the rows are not so many parts.
        TypeError: the number, or the sizes, are no integers.
    """
    if _axis("split", axis, _rank(value)):
        raise ValueError("split: a RaggedTensor is cut along its first axis alone")
    rows = value._count()
    sizes = list(as_ints(num_or_size_splits, "split: num_or_size_splits"))
    if not host_value(num_or_size_splits, "split: num_or_size_splits").ndim:
        (count,) = sizes
        if count <= 0 or rows % count:
            raise InvalidArgumentError(f"split: {rows} rows do not make {count} equal parts")
        with room_for("split", Spec((count,), int64)):
            sizes = [rows // count] * count
    if min(sizes, default=0) < 0 or sum(sizes) != rows:
        raise InvalidArgumentError(f"split: the sizes must add up to the {rows} rows; got "
                                   f"{shown(sizes)}")
    ends = ends_of(np.array(sizes, np.int64))
    return [taken(value, np.arange(a, b)) for a, b in pairwise(ends)]

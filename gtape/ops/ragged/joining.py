"""RaggedTensors joined, stacked, cut, repeated and given new axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints, host_value
from gtape.ops.ragged.conversions import expanded, of_dense
from gtape.ops.ragged.elementwise import joined, loose, taken
from gtape.ops.ragged.factories import constant
from gtape.ops.ragged.partition import ends_of, spans
from gtape.ops.ragged.ragged_tensor import RaggedTensor, rank_of
from gtape.ops.shape import arranging, layout, packing


def _axis(name: str, axis: int, rank: int) -> int:
    at = as_int(axis, f"{name}: axis")
    if not -rank <= at < rank:
        raise ValueError(f"{name}: axis must be in [{-rank}, {rank}); got {at}")
    return at % rank


def expand_dims(input: object, axis: Any, name: str | None = None) -> Any:
    """A new axis of length 1 before axis `axis`."""
    return expanded(input, _axis("expand_dims", axis, rank_of(input) + 1))


def _values(name: str, values: TensorLike | CompositeTensor) -> list[object]:
    """Tensors and RaggedTensors, or one, as RaggedTensors of one ragged rank and dtype."""
    parts = list(values) if isinstance(values, (list, tuple)) else [values]
    if not parts:
        raise ValueError(f"{name} takes at least one value; got an empty list")
    like = next((p.flat_values for p in parts if isinstance(p, RaggedTensor)), None)
    dtype = None if like is None else like.dtype
    converted = [p if isinstance(p, RaggedTensor) else
                 constant(p, dtype) if isinstance(p, (list, tuple)) else convert(p) for p in parts]
    if len({rank_of(p) for p in converted}) != 1:
        raise ValueError(f"{name}: the values must have one rank; got "
                         f"{', '.join(str(p.shape) for p in converted)}")
    if len({p.dtype for p in converted}) != 1:
        raise InvalidArgumentError(f"{name}: the values must have one dtype; got "
                                   f"{', '.join(p.dtype.name for p in converted)}")
    return converted


def _leveled(parts: Sequence[object], least: int) -> list[RaggedTensor]:
    deepest = max([least, *(p.ragged_rank for p in parts if isinstance(p, RaggedTensor))])
    return [of_dense(p, min(deepest, rank_of(p) - 1)) for p in parts]


def concat(values: TensorLike, axis: Any, name: str | None = None) -> Any:
    """One after another along `axis`, whose lengths may differ from row to row. Raises ValueError:
    the ranks differ, or there is no such axis; InvalidArgumentError: the numbers of rows before
    that axis differ."""
    if isinstance(values, RaggedTensor):
        return values
    parts = _values("concat", values)
    # TensorFlow forgets what is uniform when it joins: shapes would differ from its shapes
    # otherwise.
    return loose(_joined(parts, _axis("concat", axis, rank_of(parts[0]))))


def _joined(parts: Sequence[Any], axis: int) -> Tensor | RaggedTensor:
    if not any(isinstance(p, RaggedTensor) for p in parts) and len(
            {p.spec.shape[:axis] + p.spec.shape[axis + 1:] for p in parts}) == 1:
        return packing.concat(list(parts), axis)
    parts = _leveled(parts, 1)
    if axis == 0:
        return joined(_one_level(parts))
    counts = [p._count() for p in parts]
    if len(set(counts)) != 1:
        raise InvalidArgumentError(f"concat: the values must have one number of rows; got {counts}")
    if axis == 1:
        lengths = np.stack([np.diff(p._host()) for p in parts], 1)
        whole = joined(_one_level([p.values for p in parts]))
        # All values one after another, then picked in the order of the rows.
        offsets = np.cumsum([0, *[p._host()[-1] for p in parts[:-1]]])
        starts = np.stack([p._host()[:-1] for p in parts], 1) + offsets
        index = spans(starts.reshape(-1), lengths.reshape(-1))
        return RaggedTensor._of_splits(taken(whole, index), ends_of(lengths.sum(axis=1)))
    for other in parts[1:]:
        if not np.array_equal(other._host(), parts[0]._host()):
            raise InvalidArgumentError(f"concat: the rows before axis {axis} must have equal "
                                       f"lengths; got {shown(parts[0])} and {shown(other)}")
    return parts[0]._with(_joined([p.values for p in parts], axis - 1))


def _one_level(parts: Sequence[Tensor | RaggedTensor]) -> list[Any]:
    if not any(isinstance(p, RaggedTensor) for p in parts):
        return list(parts)
    return _leveled(parts, 1)


def stack(values: TensorLike | CompositeTensor, axis: Any = 0, name: str | None = None) -> Any:
    """Tensors and RaggedTensors of one rank side by side along a new axis, rows of any lengths.
    Raises ValueError: the ranks differ, there are none, or there is no such axis."""
    parts = _values("stack", values)
    at = _axis("stack", axis, rank_of(parts[0]) + 1)
    if all(rank_of(p) == 0 for p in parts):
        return packing.stack(parts, 0)
    return loose(_joined([expanded(p, at) for p in parts], at))


def tile(input: Any, multiples: IntsLike, name: str | None = None) -> Any:
    """Repeated multiples[i] times along axis i. Raises ValueError: there is not one number, 0 or
    more, for each axis."""
    counts = as_ints(multiples, "tile: multiples")
    if len(counts) != rank_of(input) or min(counts) < 0:
        raise ValueError(f"tile: multiples must have a number of 0 or more for each axis of "
                         f"{input.shape}; got {list(counts)}")
    tiled = input
    for axis, count in enumerate(counts):
        if count != 1:
            tiled = _tiled(tiled, axis, count)
    return loose(tiled)


def _tiled(x: Any, axis: int, count: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return arranging.tile(x, [count if a == axis else 1 for a in range(x.ndim)])
    if axis > 1:
        return x._with(_tiled(x.values, axis - 1, count))
    ends = x._host()
    with room_for("tile", Spec((int(ends[-1] if axis else x._count()) * count,), x.dtype)):
        if axis == 0:
            return taken(x, np.tile(np.arange(x._count()), count))
        lengths = np.diff(ends)
        index = spans(np.repeat(ends[:-1], count), np.repeat(lengths, count))
        uniform = None if x._uniform is None else x._uniform * count
        return RaggedTensor._of_splits(taken(x.values, index), ends_of(lengths * count), uniform)


def reverse(tensor: Any, axis: IntsLike, name: str | None = None) -> Any:
    """The order along these axes reversed; of a ragged one, that of each row."""
    turned = tensor
    for a in as_ints(axis, "reverse: axis"):
        at = _axis("reverse", a, rank_of(tensor))
        turned = turned[(*[slice(None)] * at, slice(None, None, -1))]
    return turned


def squeeze(input: TensorLike, axis: IntsLike | None = None, name: str | None = None) -> Any:
    """Without the axes of length 1 given. Raises ValueError: no axis is given, or one has another
    length."""
    if axis is None:
        raise ValueError("squeeze: the axes of a RaggedTensor must be given")
    squeezed, rank = input, rank_of(input)
    for at in sorted(_axis("squeeze", a, rank) for a in as_ints(axis, "squeeze: axis"))[::-1]:
        squeezed = _squeezed(squeezed, at)
    return squeezed


def _squeezed(x: object, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return layout.squeeze(x, axis)
    if axis > 1:
        return x._with(_squeezed(x.values, axis - 1))
    lengths = np.array([x._count()]) if axis == 0 else np.diff(x._host())
    if (lengths != 1).any():
        raise ValueError(f"squeeze: axis {axis} of {x.shape} has lengths other than 1")
    return x.values if axis == 1 else x[0]


def split(value: Any, num_or_size_splits: int, axis: Any = 0, num: object = None,
          name: str | None = None) -> list[Tensor]:
    """Cut along the first axis into equal parts, or into parts of these sizes. Raises ValueError:
    another axis; InvalidArgumentError: the rows are not so many parts; TypeError: the number, or
    the sizes, are no integers."""
    if _axis("split", axis, rank_of(value)):
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

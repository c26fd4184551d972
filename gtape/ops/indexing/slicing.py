"""slice, strided_slice and dynamic_update_slice: parts of a tensor, spelled with vectors."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import is_variable
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.elementwise.clipping import clip_by_value
from gtape.ops.indexing.getitem import Entry, _expanded, _native, getitem_
from gtape.ops.indexing.scattering import tensor_scatter_nd_update
from gtape.ops.indexing.slice_assignment import remember
from gtape.ops.shape.arranging import meshgrid
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import range_
from gtape.ops.shape.packing import stack


def slice_(input_: TensorLike, begin: IntsLike, size: IntsLike, name: str | None = None) -> Tensor:
    """size[i] cells from begin[i] on along each axis i; a size of -1 means all that follow.

    Raises:
        InvalidArgumentError: a slice that is not inside the tensor.
    """
    x = convert(input_)
    starts, sizes = as_ints(begin, "slice: begin"), as_ints(size, "slice: size")
    shape = x.spec.shape
    if not len(starts) == len(sizes) == len(shape):
        raise InvalidArgumentError(f"slice: begin and size must hold one number for each axis of "
                                   f"{x.spec}; got {list(starts)} and {list(sizes)}")
    ends = [n if m == -1 else b + m for n, b, m in zip(shape, starts, sizes)]
    if any(not 0 <= b <= e <= n for n, b, e in zip(shape, starts, ends)):
        raise InvalidArgumentError(f"slice: the slice must lie inside {x.spec}; got "
                                   f"begin={list(starts)}, size={list(sizes)}")
    return getitem_(x, key=tuple(("slice", b, e, None) for b, e in zip(starts, ends)))


def strided_slice(input_: TensorLike, begin: IntsLike, end: IntsLike,
                  strides: IntsLike | None = None, begin_mask: int = 0, end_mask: int = 0,
                  ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
                  var: Any = None, name: str | None = None) -> Tensor:
    """x[begin[0]:end[0]:strides[0], …], with Python's meaning of negative numbers.

    Args:
        begin_mask, end_mask: bit i set: begin[i], end[i] is left out.
        ellipsis_mask: bit i set: entry i is `...`.
        new_axis_mask: bit i set: entry i is a new axis.
        shrink_axis_mask: bit i set: entry i is the index begin[i], and the axis goes.
        var: the Variable that `input_` is the value of; the result can be assigned to.

    Raises:
        InvalidArgumentError: lengths differ, a stride of 0, too many entries, two ellipses, or an
            index out of bounds.
    """
    x = convert(input_)
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = (
        as_int(mask, "strided_slice: a mask") for mask in (
            begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask))
    starts, ends = as_ints(begin, "strided_slice: begin"), as_ints(end, "strided_slice: end")
    steps = (1,) * len(starts) if strides is None else as_ints(strides, "strided_slice: strides")
    if not len(starts) == len(ends) == len(steps) or 0 in steps:
        raise InvalidArgumentError(f"strided_slice: begin, end and strides must have one length, "
                                   f"and no stride may be 0; got {list(starts)}, {list(ends)}, "
                                   f"{list(steps)}")
    # Bits behind the last entry mean nothing, and may be set.
    if (ellipsis_mask & (1 << len(starts)) - 1).bit_count() > 1:
        raise InvalidArgumentError("strided_slice: only one entry can be an ellipsis")
    entries: list[Entry | EllipsisType] = []
    for i, (start, stop, step) in enumerate(zip(starts, ends, steps)):
        if ellipsis_mask >> i & 1:
            entries.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            entries.append(None)
        elif shrink_axis_mask >> i & 1:
            entries.append(start)
        else:
            entries.append(("slice", None if begin_mask >> i & 1 else start,
                            None if end_mask >> i & 1 else stop, step))
    if not (var is None or is_variable(var)):
        raise TypeError(f"strided_slice: var must be a Variable or None; got {shown(var)}")
    key = _expanded(entries, x.ndim)
    y = getitem_(x, key=key)
    if var is not None and type(y) is EagerTensor:
        remember(y, var, _native(key))
    return y


def dynamic_update_slice(*, input: TensorLike, update: TensorLike, indices: TensorLike,
                         name: str | None = None) -> Tensor:
    """`input` with the block that begins at `indices` replaced by `update`, of the same rank.

    The indices may be known at the call alone. A block that would not lie inside is moved until it
    does. Gradients flow to `update` and to what is left of `input`.

    Raises:
        InvalidArgumentError: the ranks differ, there is not one index for each axis, `update` is
            longer than `input` along one, or the dtypes differ.
    """
    x, block = convert(input), convert(update)
    begin = cast(indices, int32)
    rank, sizes = x.ndim, block.spec.shape
    if block.ndim != rank or begin.spec.shape != (rank,) or x.dtype is not block.dtype or any(
            m > n for m, n in zip(sizes, x.spec.shape)):
        raise InvalidArgumentError(f"XlaDynamicUpdateSlice: update must fit into input, with an "
                                   f"index for each axis; got {block.spec}, {x.spec} and "
                                   f"indices {begin.spec}")
    if not rank:
        return block  # one cell without indices: all of it is replaced
    room = [n - m for n, m in zip(x.spec.shape, sizes)]
    cells = stack(meshgrid(*map(range_, sizes), indexing="ij"), -1)
    # XLA moves a block that would stick out back inside, and does not raise.
    return tensor_scatter_nd_update(x, cells + clip_by_value(begin, 0, room), block)

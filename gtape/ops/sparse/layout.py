"""SparseTensors cut, joined, turned and given other shapes."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import normal_axes
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints, as_items, host
from gtape.ops.shape.layout import broadcast_to_
from gtape.ops.shape.packing import concat_
from gtape.ops.sparse.conversions import reorder
from gtape.ops.sparse.places import all_cells, columns_, places_, sparse
from gtape.ops.sparse.tensor import SparseTensor, lengths_of, pick, placed


def _axis(name: str, axis: int, rank: int) -> int:
    (at,) = normal_axes(name, as_int(axis, f"{name}: axis"), rank)
    return at


def reshape(sp_input: SparseTensor, shape: IntsLike, name: str | None = None) -> SparseTensor:
    """The same values, in row-major order, in another shape; one length may be -1.

    Raises:
        InvalidArgumentError: the number of cells differs.
    """
    x = sparse(sp_input, "reshape")
    wanted = list(as_ints(shape, "reshape: shape"))
    total = math.prod(x._lengths)
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest and total % rest:
            raise InvalidArgumentError(f"reshape: {total} cells do not fit the shape "
                                       f"{shown(wanted)}")
        wanted[wanted.index(-1)] = total // rest if rest else 0
    if math.prod(wanted) != total or not all(0 <= n < 1 << 63 for n in wanted):
        raise InvalidArgumentError(f"reshape: the shape {list(x.shape)} has {total} cells, which "
                                   f"do not fit {shown(list(wanted))}")
    shape = tuple(wanted)
    return SparseTensor._of_parts(places_(all_cells(x), shape=shape), x.values, shape)


def transpose(sp_input: SparseTensor, perm: object = None, name: str | None = None) -> SparseTensor:
    """The axes in another order, the last first unless `perm` is given.

    Raises:
        ValueError: `perm` is no order of the axes.
    """
    x = sparse(sp_input, "transpose")
    rank = len(x._lengths)
    order = tuple(range(rank))[::-1] if perm is None else tuple(
        n + rank if n < 0 else n for n in as_ints(perm, "transpose: perm"))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"transpose: perm must be an order of {list(range(rank))}; got "
                         f"{shown(perm)}")
    turned = SparseTensor._of_parts(columns_(x.indices, axes=order), x.values,
                                    tuple(x._lengths[n] for n in order))
    return reorder(turned)


def expand_dims(sp_input: SparseTensor, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of length 1, the last unless `axis` is given.

    Raises:
        InvalidArgumentError: no such axis.
    """
    x = sparse(sp_input, "expand_dims")
    rank = len(x._lengths)
    at = _axis("expand_dims", -1 if axis is None else axis, rank + 1)
    return SparseTensor._of_parts(
        columns_(x.indices, axes=(*range(at), -1, *range(at, rank))), x.values,
        (*x._lengths[:at], 1, *x._lengths[at:]))


def slice(sp_input: SparseTensor, start: TensorLike, size: IntsLike, name: str | None = None,
          ) -> SparseTensor:
    """The box of lengths `size` that begins at `start`; what lies beyond the end is left out.

    Raises:
        InvalidArgumentError: not one number for each axis, or a negative one.
    """
    x = sparse(sp_input, "slice")
    low, lengths = lengths_of(start, "slice: start"), lengths_of(size, "slice: size")
    if not len(low) == len(lengths) == len(x._lengths):
        raise InvalidArgumentError(f"slice: start and size must have one number for each axis of "
                                   f"{list(x.shape)}; got {list(low)} and {list(lengths)}")
    cut = tuple(max(min(n, whole - first), 0)
                for first, n, whole in zip(low, lengths, x._lengths))
    rows = host(x.indices) - np.array(low, np.int64)
    kept = np.flatnonzero(((rows >= 0) & (rows < np.array(cut, np.int64))).all(axis=1))
    return SparseTensor._of_rows(rows[kept], pick(x.values, kept), cut)


def split(sp_input: Any = None, num_split: int | None = None, axis: Any = None,
          name: str | None = None) -> list[SparseTensor]:
    """`num_split` pieces along `axis`; the first are longer by 1 where it is no divisor.

    Raises:
        InvalidArgumentError: the number is not in [1, the length of the axis].
    """
    x = sparse(sp_input, "split")
    at = _axis("split", axis, len(x._lengths))
    parts, whole = as_int(num_split, "split: num_split"), x._lengths[at]
    if not 1 <= parts <= max(whole, 1):
        raise InvalidArgumentError(f"split: num_split must be in [1, {whole}], the length of axis "
                                   f"{at}; got {parts}")
    pieces, first = [], 0
    for i in range(parts):
        length = whole // parts + (i < whole % parts)
        low = [first if a == at else 0 for a in range(len(x._lengths))]
        pieces.append(slice(x, low, [length if a == at else n for a, n in enumerate(x._lengths)]))
        first += length
    return pieces


def concat(axis: Any, sp_inputs: TensorLike, expand_nonconcat_dims: bool = False,
           name: str | None = None) -> SparseTensor:
    """SparseTensors one after another along `axis`.

    Args:
        expand_nonconcat_dims: the other axes may have different lengths, of which the largest
            is taken.

    Raises:
        InvalidArgumentError: the other lengths, the ranks or the dtypes differ.
        ValueError: there are none.
    """
    if isinstance(sp_inputs, SparseTensor):
        sp_inputs = [sp_inputs]
    parts = [sparse(v, "concat") for v in as_items(sp_inputs, "concat: sp_inputs")]
    if not parts:
        raise ValueError("concat takes at least one SparseTensor; got an empty list")
    rank = len(parts[0]._lengths)
    if any(len(p._lengths) != rank or p.dtype is not parts[0].dtype for p in parts):
        raise InvalidArgumentError(f"concat: the SparseTensors must have one rank and one dtype; "
                                   f"got {', '.join(map(_described, parts))}")
    at = _axis("concat", axis, rank)
    lengths = parts[0]._lengths
    if expand_nonconcat_dims:
        lengths = tuple(map(max, zip(*[p._lengths for p in parts])))
    elif any(n != lengths[a] for p in parts for a, n in enumerate(p._lengths) if a != at):
        raise InvalidArgumentError(f"concat: the lengths of all axes but {at} must be equal; got "
                                   f"{', '.join(map(_described, parts))}. Or give "
                                   f"expand_nonconcat_dims=True")
    shifted, first = [], 0
    for p in parts:
        step = np.array([first if a == at else 0 for a in range(rank)], np.int64)
        shifted.append(p.indices + convert(step, dtypes.int64, p.values._t.device))
        first += p._lengths[at]
    whole = SparseTensor._of_parts(concat_(*shifted, axis=0),
                                   concat_(*[p.values for p in parts], axis=0),
                                   (*lengths[:at], first, *lengths[at + 1:]))
    return reorder(whole) if at else whole  # along the first axis they are in order


def _described(x: SparseTensor) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def retain(sp_input: Any, to_retain: TensorLike) -> SparseTensor:
    """The values where the bool vector `to_retain` is true.

    Raises:
        ValueError: there is not one bool for each value.
    """
    x = sparse(sp_input, "retain")
    chosen = convert(to_retain, None, x.values._t.device)
    if not chosen.dtype.is_bool or chosen.spec.shape != x.values.spec.shape:
        raise ValueError(f"retain: to_retain must hold one bool for each value, "
                         f"{list(x.values.spec.shape)}; got {chosen.spec}")
    kept = np.flatnonzero(host(chosen))
    return SparseTensor._of_parts(pick(x.indices, kept), pick(x.values, kept), x._lengths)


def fill_empty_rows(sp_input: SparseTensor, default_value: SupportsFloat, name: str | None = None,
                    ) -> tuple[SparseTensor, Tensor]:
    """(the SparseTensor with `default_value` at the start of every row that has no value, bools
    [rows]: which rows had none).

    Raises:
        TypeError: `default_value` does not fit the dtype.
        InvalidArgumentError: a row index out of range.
    """
    x = sparse(sp_input, "fill_empty_rows")
    default = convert(default_value, x.dtype, x.values._t.device)
    rows, count = host(x.indices), x._lengths[0] if x._lengths else 1
    if len(rows) and (rows[:, 0].min() < 0 or rows[:, 0].max() >= count):
        raise InvalidArgumentError(f"fill_empty_rows: the row indices must be in [0, {count})")
    empty = np.ones(count, bool)
    empty[rows[:, 0]] = False
    filled = np.zeros((int(empty.sum()), len(x._lengths)), np.int64)
    filled[:, 0] = np.flatnonzero(empty)
    joined = np.concatenate([rows, filled])
    order = np.argsort(joined[:, 0], kind="stable")
    values = concat_(x.values, broadcast_to_(default, shape=(len(filled),)), axis=0)
    whole = SparseTensor._of_rows(joined[order], pick(values, order), x._lengths)
    return whole, placed(empty, x.values)


def reset_shape(sp_input: SparseTensor, new_shape: IntsLike | None = None) -> SparseTensor:
    """The same indices and values in a larger shape; the smallest that holds them unless given.

    Raises:
        InvalidArgumentError: `new_shape` is smaller along an axis, or has another rank.
    """
    x = sparse(sp_input, "reset_shape")
    if new_shape is None:
        rows = host(x.indices)
        tight = rows.max(axis=0) + 1 if len(rows) else np.zeros(len(x._lengths), np.int64)
        return SparseTensor._of_parts(x.indices, x.values, tuple(int(n) for n in tight))
    lengths = lengths_of(new_shape, "reset_shape: new_shape")
    if len(lengths) != len(x._lengths):
        raise ValueError(f"reset_shape: the new shape must have the rank of {list(x.shape)}; got "
                         f"{list(lengths)}")
    if any(n < m for n, m in zip(lengths, x._lengths)):
        raise ValueError(f"reset_shape: no length of the new shape may be less than that of "
                         f"{list(x.shape)}; got {list(lengths)}")
    return SparseTensor._of_parts(x.indices, x.values, lengths)

"""SparseTensors made of dense tensors and back, put in order, cut, joined, turned and given other
shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, float32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.spec import Spec, normal_axes, room_for
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_function, as_int, as_ints, as_items, host
from gtape.ops.control.selection import where
from gtape.ops.elementwise.scalars import not_equal
from gtape.ops.indexing.gathering import gather_nd_, scatter_nd_
from gtape.ops.indexing.scattering import tensor_scatter_update_
from gtape.ops.shape.layout import broadcast_to_
from gtape.ops.shape.packing import concat_
from gtape.ops.sparse import tensor as tensors
from gtape.ops.sparse.tensor import SparseTensor, all_cells, lengths_of, pick, placed, sparse


def _axis(name: str, axis: int, rank: int) -> int:
    (at,) = normal_axes(name, as_int(axis, f"{name}: axis"), rank)
    return at


def reshape(sp_input: SparseTensor, shape: IntsLike, name: str | None = None) -> SparseTensor:
    """The same values, in row-major order, in another shape; one length may be -1. Raises
    InvalidArgumentError: the number of cells differs."""
    x = sparse(sp_input, "reshape")
    wanted = list(as_ints(shape, "reshape: shape"))
    total = math.prod(x._lengths)
    # The product of the others is -math.prod, as the one -1 is in it.
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
    return SparseTensor._of_parts(tensors.places_(all_cells(x), shape=shape), x.values, shape)


def transpose(sp_input: SparseTensor, perm: object = None, name: str | None = None) -> SparseTensor:
    """The axes in another order, the last first unless `perm` is given. Raises ValueError: `perm`
    is no order of the axes."""
    x = sparse(sp_input, "transpose")
    rank = len(x._lengths)
    order = tuple(range(rank))[::-1] if perm is None else tuple(
        n + rank if n < 0 else n for n in as_ints(perm, "transpose: perm"))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"transpose: perm must be an order of {list(range(rank))}; got "
                         f"{shown(perm)}")
    turned = SparseTensor._of_parts(tensors.columns_(x.indices, axes=order), x.values,
                                    tuple(x._lengths[n] for n in order))
    return reorder(turned)


def expand_dims(sp_input: SparseTensor, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of length 1, the last unless `axis` is given. Raises InvalidArgumentError: no such
    axis."""
    x = sparse(sp_input, "expand_dims")
    rank = len(x._lengths)
    at = _axis("expand_dims", -1 if axis is None else axis, rank + 1)
    return SparseTensor._of_parts(
        tensors.columns_(x.indices, axes=(*range(at), -1, *range(at, rank))), x.values,
        (*x._lengths[:at], 1, *x._lengths[at:]))


def slice(sp_input: SparseTensor, start: TensorLike, size: IntsLike, name: str | None = None,
          ) -> SparseTensor:
    """The box of lengths `size` that begins at `start`; what lies beyond the end is left out.
    Raises InvalidArgumentError: not one number for each axis, or a negative one."""
    x = sparse(sp_input, "slice")
    low, lengths = lengths_of(start, "slice: start"), lengths_of(size, "slice: size")
    if not len(low) == len(lengths) == len(x._lengths):
        raise InvalidArgumentError(f"slice: start and size must have one number for each axis of "
                                   f"{list(x.shape)}; got {list(low)} and {list(lengths)}")
    cut = tuple(max(min(n, whole - first), 0) for first, n, whole in zip(low, lengths, x._lengths))
    rows = host(x.indices) - np.array(low, np.int64)
    kept = np.flatnonzero(((rows >= 0) & (rows < np.array(cut, np.int64))).all(axis=1))
    return SparseTensor._of_rows(rows[kept], pick(x.values, kept), cut)


def split(sp_input: Any = None, num_split: int | None = None, axis: Any = None,
          name: str | None = None) -> list[SparseTensor]:
    """`num_split` pieces along `axis`; the first are longer by 1 where it is no divisor. Raises
    InvalidArgumentError: the number is not in [1, the length of the axis]."""
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
    """SparseTensors one after another along `axis`. `expand_nonconcat_dims`: the other axes may
    have different lengths, of which the largest is taken. Raises InvalidArgumentError: the other
    lengths, the ranks or the dtypes differ; ValueError: there are none."""
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
    # By an addition of tensors and not in NumPy, so that indices of a trace or a GPU stay there.
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
    """The values where the bool vector `to_retain` is true. Raises ValueError: there is not one
    bool for each value."""
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
    [rows]: which rows had none). Raises TypeError: `default_value` does not fit the dtype;
    InvalidArgumentError: a row index out of range."""
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
    # Stable: the values of a row keep their order, and filled rows have one value each.
    order = np.argsort(joined[:, 0], kind="stable")
    values = concat_(x.values, broadcast_to_(default, shape=(len(filled),)), axis=0)
    whole = SparseTensor._of_rows(joined[order], pick(values, order), x._lengths)
    return whole, placed(empty, x.values)


def reset_shape(sp_input: SparseTensor, new_shape: IntsLike | None = None) -> SparseTensor:
    """The same indices and values in a larger shape; the smallest that holds them unless given.
    Raises InvalidArgumentError: `new_shape` is smaller along an axis, or has another rank."""
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


def to_dense(sp_input: SparseTensor, default_value: TensorLike | None = None,
             validate_indices: bool = True, name: str | None = None) -> Tensor:
    """The whole tensor, with `default_value` (0, False or "" unless given) where there is no value.
    `validate_indices`: check that the indices are in order and that none comes twice; if not, the
    last of equal ones counts. Raises InvalidArgumentError: they are not, or an index is out of
    range."""
    x = sparse(sp_input, "to_dense")
    if validate_indices:
        tensors.check_order(x)
    if not x._lengths:
        count = require_known(x.values.spec.shape)[0]
        return x.values[count - 1] if count else _default(x, default_value)
    # No place comes twice, so that values may be added to zeros, which has the simplest gradient.
    if default_value is None and validate_indices and (
            x.dtype.is_differentiable or x.dtype.is_integer):
        return scatter_nd_(x.indices, x.values, shape=x._lengths)
    filled = broadcast_to_(_default(x, default_value), shape=x._lengths)
    return tensor_scatter_update_(filled, x.indices, x.values)


def _default(x: SparseTensor, value: TensorLike | None) -> Tensor:
    if value is None:
        value = b"" if x.dtype is string else x.dtype.as_numpy_dtype(0)
    default = convert(value, x.dtype if not isinstance(value, Tensor) else None, x.values._t.device)
    if default.dtype is not x.dtype or default.ndim:
        raise InvalidArgumentError(f"to_dense: default_value must be a scalar {x.dtype.name}; got "
                                   f"{default.spec}")
    return default


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements that are not 0 (not False, not ""), in row-major order."""
    x = convert(tensor)
    at = where(not_equal(x, convert(b"")) if x.dtype is string else x)
    return SparseTensor._of_parts(at, gather_nd_(x, at), x.spec.shape)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same values with their indices in row-major order; equal indices stay as they came.
    Raises InvalidArgumentError: the shape has 2**63 cells or more, and the function is traced."""
    x = sparse(sp_input, "reorder")
    # A trace knows neither order nor keys: it sorts the numbers of the cells when it runs.
    if type(x.indices) is not EagerTensor:
        cells = all_cells(x)
        order = tensors.order_(cells)
        return SparseTensor._of_parts(tensors.places_(pick(cells, order), shape=x._lengths),
                                      pick(x.values, order), x._lengths)
    rows = host(x.indices)
    (keys,) = tensors.keys_of(x._lengths, rows)
    if (keys[1:] >= keys[:-1]).all():  # as most are: nothing is copied
        return x
    by_key = np.argsort(keys, kind="stable")
    return SparseTensor._of_rows(rows[by_key], pick(x.values, by_key), x._lengths)


def to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """Bools [..., vocab_size]: y[..., v] is whether v is among the values of the last axis. Raises
    TypeError: the values are not integers; InvalidArgumentError: a value is not in [0,
    vocab_size)."""
    x = sparse(sp_input, "to_indicator")
    if not x.dtype.is_integer:
        raise TypeError(f"to_indicator takes integer values, int32 or int64; got {x.dtype.name}")
    size = as_int(vocab_size, "to_indicator: vocab_size")
    rows, ids = host(x.indices), host(x.values)
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        raise InvalidArgumentError(f"to_indicator: the values must be in [0, {size}); got "
                                   f"{int(ids.min())} to {int(ids.max())}")
    with room_for("to_indicator", Spec((*x._lengths[:-1], size), dtypes.bool_)):
        indicator = np.zeros((*x._lengths[:-1], size), bool)
    indicator[(*rows[:, :-1].T, ids)] = True
    return placed(indicator, x.values)


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """`op` of the values of the SparseTensors among the arguments, at their indices. Raises
    ValueError: there is no SparseTensor among them, `op` gives another number of values, or the
    indices or shapes of two of them differ."""
    as_function(op, "map_values: op")
    operands = [v for v in (*args, *kwargs.values()) if isinstance(v, SparseTensor)]
    if not operands:
        raise ValueError("map_values takes at least one SparseTensor among its arguments")
    first = operands[0]
    for other in operands[1:]:
        if other._lengths != first._lengths or (other.indices is not first.indices and (
                not np.array_equal(host(first.indices), host(other.indices)))):
            raise InvalidArgumentError("map_values takes SparseTensors with the same indices and "
                                       f"the same dense_shape; got {shown(first)} and "
                                       f"{shown(other)}")

    def bare(value: TensorLike | CompositeTensor) -> Any:
        return value.values if isinstance(value, SparseTensor) else value

    return first.with_values(op(*map(bare, args), **{key: bare(v) for key, v in kwargs.items()}))


def eye(num_rows: int, num_columns: int | None = None, dtype: object = float32,
        name: str | None = None) -> SparseTensor:
    """Ones on the diagonal of [num_rows, num_columns]. Raises InvalidArgumentError: a negative
    number."""
    rows = as_int(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else as_int(num_columns, "eye: num_columns")
    if rows < 0 or columns < 0:
        raise InvalidArgumentError(f"eye: num_rows and num_columns must be 0 or more; got {rows} "
                                   f"and {columns}")
    with room_for("eye", Spec((min(rows, columns), 2), dtypes.int64)):
        at = np.arange(min(rows, columns))
    ones = convert(np.ones(len(at), as_dtype(dtype).as_numpy_dtype))
    return SparseTensor(np.stack([at, at], 1), ones, (rows, columns))


def mask(a: TensorLike, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """An IndexedSlices without the rows whose indices are in `mask_indices`. Raises TypeError: `a`
    is none."""
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"tf.sparse.mask takes an IndexedSlices; got a {type(a).__name__}")
    at = host(a.indices)
    unwanted = host(convert(mask_indices))
    kept = np.flatnonzero(~np.isin(at, unwanted))
    return IndexedSlices(pick(a.values, kept), pick(a.indices, kept), a.dense_shape)

"""SparseTensors from dense tensors and back, and put in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, float32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.symbolic_dim import known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_function, as_int
from gtape.ops.indexing.gathering import gather_nd_, scatter_nd_
from gtape.ops.shape.layout import broadcast_to_
from gtape.ops.sparse.places import (
    all_cells,
    check_order,
    host_rows,
    keys_of,
    order_,
    pick,
    placed,
    places_,
    sparse,
)
from gtape.ops.sparse.tensor import SparseTensor


def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True,
             name: str | None = None) -> Tensor:
    """The whole tensor, with `default_value` (0, False or "" unless given) where there is no value.

    Args:
        validate_indices: check that the indices are in order and that none comes twice; if not,
            the last of equal ones counts.

    Raises:
        InvalidArgumentError: they are not, or an index is out of range.
    """
    from gtape.ops.indexing.scattering import tensor_scatter_update_

    x = sparse(sp_input, "to_dense")
    if validate_indices:
        check_order(x)
    if not x._lengths:
        return _scalar(x, default_value)
    plain = default_value is None and validate_indices and (
        x.dtype.is_differentiable or x.dtype.is_integer)
    if plain:
        return scatter_nd_(x.indices, x.values, shape=x._lengths)
    return tensor_scatter_update_(_filled(x, default_value), x.indices, x.values)


def _default(x: SparseTensor, value: Any) -> Tensor:
    if value is None:
        value = b"" if x.dtype is string else x.dtype.as_numpy_dtype(0)
    made = convert(value, x.dtype if not isinstance(value, Tensor) else None, x.values._t.device)
    if made.dtype is not x.dtype or made.ndim:
        raise InvalidArgumentError(f"to_dense: default_value must be a scalar {x.dtype.name}; got "
                                   f"{made.spec}")
    return made


def _filled(x: SparseTensor, value: Any) -> Tensor:
    return broadcast_to_(_default(x, value), shape=x._lengths)


def _scalar(x: SparseTensor, default_value: Any) -> Tensor:
    count = known(x.values.spec.shape)[0]
    return x.values[count - 1] if count else _default(x, default_value)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements that are not 0 (not False, not ""), in row-major order."""
    from gtape.ops.control.selection import where
    from gtape.ops.elementwise.scalars import not_equal

    x = convert(tensor)
    full = x
    if x.dtype is string:
        full = not_equal(x, convert(b""))
    at = where(full)
    return SparseTensor._made(at, gather_nd_(x, at), x.spec.shape)


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same values with their indices in row-major order; equal indices stay as they came.

    Raises:
        InvalidArgumentError: the shape has 2**63 cells or more, and the function is traced.
    """
    x = sparse(sp_input, "reorder")
    if type(x.indices) is not EagerTensor:
        cells = all_cells(x)
        order = order_(cells)
        return SparseTensor._made(places_(pick(cells, order), shape=x._lengths),
                                  pick(x.values, order), x._lengths)
    rows = host_rows(x)
    (keys,) = keys_of(x._lengths, rows)
    if (keys[1:] >= keys[:-1]).all():
        return x
    found = np.argsort(keys, kind="stable")
    return SparseTensor._made(placed(rows[found], x.values),
                              pick(x.values, placed(found, x.values)), x._lengths)


def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Bools [..., vocab_size]: y[..., v] is whether v is among the values of the last axis.

    Raises:
        TypeError: the values are not integers.
        InvalidArgumentError: a value is not in [0, vocab_size).
    """
    x = sparse(sp_input, "to_indicator")
    if not x.dtype.is_integer:
        raise TypeError(f"to_indicator takes integer values, int32 or int64; got {x.dtype.name}")
    size = as_int(vocab_size, "to_indicator: vocab_size")
    rows, ids = host_rows(x), np.asarray(x.values._peek())  # type: ignore[attr-defined]
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        raise InvalidArgumentError(f"to_indicator: the values must be in [0, {size}); got "
                                   f"{int(ids.min())} to {int(ids.max())}")
    with room_for("to_indicator", Spec((*x._lengths[:-1], size), dtypes.bool_)):
        made = np.zeros((*x._lengths[:-1], size), bool)
    made[(*rows[:, :-1].T, ids)] = True
    return placed(made, x.values)


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """`op` of the values of the SparseTensors among the arguments, at their indices.

    Raises:
        ValueError: there is no SparseTensor among them, `op` gives another number of values, or
            the indices or shapes of two of them differ.
    """
    as_function(op, "map_values: op")
    found = [v for v in (*args, *kwargs.values()) if isinstance(v, SparseTensor)]
    if not found:
        raise ValueError("map_values takes at least one SparseTensor among its arguments")
    first = found[0]
    for other in found[1:]:
        if other._lengths != first._lengths or not _same(first.indices, other.indices):
            raise InvalidArgumentError("map_values takes SparseTensors with the same indices and "
                                       f"the same dense_shape; got {shown(first)} and "
                                       f"{shown(other)}")

    def bare(value: Any) -> Any:
        return value.values if isinstance(value, SparseTensor) else value

    made = op(*map(bare, args), **{name: bare(v) for name, v in kwargs.items()})
    return first.with_values(made)


def _same(a: Tensor, b: Tensor) -> bool:
    if a is b:
        return True
    return bool(np.array_equal(a._peek(), b._peek()))  # type: ignore[attr-defined]


def eye(num_rows: Any, num_columns: Any = None, dtype: Any = float32, name: str | None = None,
        ) -> SparseTensor:
    """Ones on the diagonal of [num_rows, num_columns].

    Raises:
        InvalidArgumentError: a negative number.
    """
    rows = as_int(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else as_int(num_columns, "eye: num_columns")
    if rows < 0 or columns < 0:
        raise InvalidArgumentError(f"eye: num_rows and num_columns must be 0 or more; got {rows} "
                                   f"and {columns}")
    with room_for("eye", Spec((min(rows, columns), 2), dtypes.int64)):
        at = np.arange(min(rows, columns))
    ones = convert(np.ones(len(at), as_dtype(dtype).as_numpy_dtype))
    return SparseTensor(np.stack([at, at], 1), ones, (rows, columns))


def mask(a: Any, mask_indices: Any, name: str | None = None) -> Any:
    """An IndexedSlices without the rows whose indices are in `mask_indices`.

    Raises:
        TypeError: `a` is none.
    """
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"tf.sparse.mask takes an IndexedSlices; got a {type(a).__name__}")
    at = host(a.indices)
    unwanted = host(convert(mask_indices))
    kept = placed(np.flatnonzero(~np.isin(at, unwanted)), a.values)
    return IndexedSlices(pick(a.values, kept), pick(a.indices, kept), a.dense_shape)


def host(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor in host memory."""
    return np.asarray(tensor._peek())  # type: ignore[attr-defined]


def int64_rows(rows: np.ndarray, like: Tensor) -> Tensor:
    """Index tuples beside a tensor."""
    return convert(np.ascontiguousarray(rows, np.int64), dtypes.int64, like._t.device)

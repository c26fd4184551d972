"""SparseTensors from dense tensors and back, and put in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, float32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_function, as_int, host
from gtape.ops.control.selection import where
from gtape.ops.elementwise.scalars import not_equal
from gtape.ops.indexing.gathering import gather_nd_, scatter_nd_
from gtape.ops.indexing.scattering import tensor_scatter_update_
from gtape.ops.shape.layout import broadcast_to_
from gtape.ops.sparse.places import all_cells, check_order, keys_of, order_, places_, sparse
from gtape.ops.sparse.tensor import SparseTensor, pick, placed


def to_dense(sp_input: SparseTensor, default_value: TensorLike | None = None,
             validate_indices: bool = True, name: str | None = None) -> Tensor:
    """The whole tensor, with `default_value` (0, False or "" unless given) where there is no value.

    Args:
        validate_indices: check that the indices are in order and that none comes twice; if not,
            the last of equal ones counts.

    Raises:
        InvalidArgumentError: they are not, or an index is out of range.
    """
    x = sparse(sp_input, "to_dense")
    if validate_indices:
        check_order(x)
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

    Raises:
        InvalidArgumentError: the shape has 2**63 cells or more, and the function is traced.
    """
    x = sparse(sp_input, "reorder")
    if type(x.indices) is not EagerTensor:
        cells = all_cells(x)
        order = order_(cells)
        return SparseTensor._of_parts(places_(pick(cells, order), shape=x._lengths),
                                      pick(x.values, order), x._lengths)
    rows = host(x.indices)
    (keys,) = keys_of(x._lengths, rows)
    if (keys[1:] >= keys[:-1]).all():  # as most are: nothing is copied
        return x
    by_key = np.argsort(keys, kind="stable")
    return SparseTensor._of_rows(rows[by_key], pick(x.values, by_key), x._lengths)


def to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """Bools [..., vocab_size]: y[..., v] is whether v is among the values of the last axis.

    Raises:
        TypeError: the values are not integers.
        InvalidArgumentError: a value is not in [0, vocab_size).
    """
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
    """`op` of the values of the SparseTensors among the arguments, at their indices.

    Raises:
        ValueError: there is no SparseTensor among them, `op` gives another number of values, or
            the indices or shapes of two of them differ.
    """
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


def mask(a: TensorLike, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """An IndexedSlices without the rows whose indices are in `mask_indices`.

    Raises:
        TypeError: `a` is none.
    """
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"tf.sparse.mask takes an IndexedSlices; got a {type(a).__name__}")
    at = host(a.indices)
    unwanted = host(convert(mask_indices))
    kept = np.flatnonzero(~np.isin(at, unwanted))
    return IndexedSlices(pick(a.values, kept), pick(a.indices, kept), a.dense_shape)

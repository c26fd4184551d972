"""Sparse writing to variables: scatter_*, scatter_nd_*, and reading rows of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import variable as variables
from gtape.core.convert import convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.placement import at_home
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import Variable
from gtape.kinds.typing_rules import same_device
from gtape.numerics.scatter import segment_max, segment_min, segment_prod, segment_sum
from gtape.ops.arguments import index_tensor
from gtape.ops.gathering import _checked_rows, check_rows, gather, gather_nd
from gtape.ops.layout import identity_
from gtape.ops.letters import truncatediv

_ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum",
               "max": "maximum"}
#: Values of one row, combined before they meet the variable.
_COMBINED = {"add": segment_sum, "sub": segment_sum, "mul": segment_prod, "div": segment_prod,
             "min": segment_min, "max": segment_max}


def _combine(xp: Any, how: str, old: Any, values: Any) -> Any:
    if how != "div":
        return getattr(xp, _ARITHMETIC[how])(old, values)
    return truncatediv(xp, old, values) if old.dtype.kind in "iu" else old / values


def _written_rows(xp: Any, how: str, table: Any, rows: Any, values: Any) -> None:
    """Write into `table`, row by row; equal rows are combined first, or the last one counts."""
    if how == "update":
        table[rows] = values
        return
    distinct, place = xp.unique(rows, return_inverse=True)
    if distinct.size < rows.size:
        values = _COMBINED[how](xp, values, place.reshape(-1), distinct.size)
        rows = distinct
    table[rows] = _combine(xp, how, table[rows], values).astype(table.dtype, copy=False)


@at_home
def _assigned(variable: Variable, how: str, rows: Any, depth: int, values: Tensor) -> Any:
    """The variable after its rows, numbered over the first `depth` axes, were written."""
    state = variable._resource_()
    old = state._value._array_()
    xp = state._value._t.xp
    made = xp.array(old)
    table = made.reshape((math.prod(old.shape[:depth]), *old.shape[depth:]))
    updates = values._array_().reshape((rows.size, *table.shape[1:]))
    if xp is not np:
        kept = (rows >= 0) & (rows < table.shape[0])
        rows, updates = rows[kept], updates[kept]
    with np.errstate(all="ignore"):
        _written_rows(xp, how, table, rows, updates)
    return variable._written(EagerTensor(made, state._value._t), True, values, state)


def _updates(variable: Variable, given: Any, wanted: tuple[int, ...], name: str) -> Tensor:
    """`given` in the variable's dtype and in the shape `wanted`; a scalar is repeated."""
    like = variable._resource_()._value
    values = convert_like(given, like._t, name)
    if values.dtype is not like.dtype:
        raise InvalidArgumentError(f"{name}: the Variable '{variable.name}' is {like.dtype!r}, the "
                                   f"values {values.dtype!r}; write tf.cast(values, "
                                   f"tf.{like.dtype.name})")
    same_device(name, (like, values))
    if values.spec.shape == ():
        return EagerTensor(like._t.xp.broadcast_to(values._array_(), wanted), like._t)
    if values.spec.shape != wanted:
        raise InvalidArgumentError(f"{name}: for the Variable '{variable.name}' of shape "
                                   f"{variable.shape} the values must have shape {list(wanted)}; "
                                   f"got {values.spec}")
    return values


def _scatter(variable: Variable, sparse_delta: Any, how: str) -> Any:
    """`Variable.scatter_*`: rows along axis 0."""
    name = f"scatter_{how}"
    if not isinstance(sparse_delta, IndexedSlices):
        raise TypeError(f"{name} takes tf.IndexedSlices(values, indices); got "
                        f"{type(sparse_delta).__name__}. Use assign_add for a dense tensor")
    like = variable._resource_()._value
    if not like.ndim:
        raise InvalidArgumentError(f"{name}: the Variable '{variable.name}' is a scalar and has no "
                                   f"rows; use assign")
    index = index_tensor(sparse_delta.indices, name, like)
    wanted = (*index.spec.shape, *like.spec.shape[1:])
    values = _updates(variable, sparse_delta.values, wanted, name)
    rows = index._array_().reshape(-1)
    check_rows(like._t.xp, rows, like.spec.shape[0], name)
    return _assigned(variable, how, rows, 1, values)


@at_home
def _scatter_nd(variable: Variable, indices: Any, updates: Any, how: str) -> Any:
    """`Variable.scatter_nd_*`: slices at index tuples."""
    name = f"scatter_nd_{how}"
    like = variable._resource_()._value
    index = index_tensor(indices, name, like)
    depth = index.spec.shape[-1] if index.ndim else 0
    if not index.ndim or depth > like.ndim:
        raise InvalidArgumentError(f"{name}: the last axis of indices holds an index tuple of at "
                                   f"most {like.ndim} entries; got {index.spec}")
    wanted = (*index.spec.shape[:-1], *like.spec.shape[depth:])
    values = _updates(variable, updates, wanted, name)
    rows = _checked_rows(like._t.xp, index._array_(), like.spec.shape, name).reshape(-1)
    return _assigned(variable, how, rows, depth, values)


variables.hooks.update(identity=identity_, gather=gather, gather_nd=gather_nd, scatter=_scatter,
                       scatter_nd=_scatter_nd)

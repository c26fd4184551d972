"""Sparse writing to variables: scatter_*, scatter_nd_*, and reading rows of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import paused
from gtape.core.convert import convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import case, ints
from gtape.core.recording import same_device
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.numerics.scatter import segment_max, segment_min, segment_prod, segment_sum
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import index_tensor
from gtape.ops.elementwise.scalar_numpy import truncatediv
from gtape.ops.indexing.gathering import _checked_rows, check_rows
from gtape.ops.shape.layout import broadcast_to_

_ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum",
               "max": "maximum"}
_sum = partial(segment_sum, wide=True)
#: Values of one row, combined before they meet the variable.
_COMBINED: dict[str, Callable[..., Any]] = {
    "add": _sum, "sub": _sum, "mul": segment_prod, "div": segment_prod, "min": segment_min,
    "max": segment_max}


def _combine(xp: ArrayModule, how: str, old: Array, values: Array) -> Array:
    if how != "div":
        return getattr(xp, _ARITHMETIC[how])(old, values)
    return truncatediv(xp, old, values) if old.dtype.kind in "iu" else old / values


def _written_rows(xp: Any, how: str, table: Any, rows: Any, values: Any) -> None:
    """Write into `table`, row by row; equal rows are combined first, or the last one counts."""
    if how == "update":
        table[rows] = values
        return
    # x[rows] = … takes one of equal rows alone: their values are combined before.
    distinct, place = xp.unique(rows, return_inverse=True)
    # Only then: combining reads all values, and most updates name every row once.
    if distinct.size < rows.size:
        values = _COMBINED[how](xp, values, place.reshape(-1), distinct.size)
        rows = distinct
    table[rows] = _combine(xp, how, table[rows], values).astype(table.dtype, copy=False)


def _changed(xp: Any, old: Any, rows: Any, updates: Any, how: str, depth: int) -> Any:
    """`old` after its rows, numbered over the first `depth` axes, were written."""
    y = xp.array(old)  # a copy: a tape may still hold the old value
    table = y.reshape((math.prod(old.shape[:depth]), *old.shape[depth:]))
    updates = updates.reshape((rows.size, *table.shape[1:]))
    if xp is not np:
        # In host memory the rows were checked; on a GPU those out of range are left out.
        kept = (rows >= 0) & (rows < table.shape[0])
        rows, updates = rows[kept], updates[kept]
    _written_rows(xp, how, table, rows, updates)
    return y


@primitive(nondifferentiable=True)
def changed_rows_(xp: ArrayModule, value: Any, indices: Any, updates: object, *, how: str) -> Any:
    """`value` with rows along axis 0 written."""
    rows = indices.reshape(-1)
    check_rows(xp, rows, value.shape[0], f"scatter_{how}")
    return _changed(xp, value, rows, updates, how, 1)


@primitive(nondifferentiable=True)
def changed_slices_(xp: ArrayModule, value: Array, indices: Array, updates: Array, *, how: str,
                    ) -> Array:
    """`value` with the slices at index tuples written."""
    rows = _checked_rows(xp, indices, value.shape, f"scatter_nd_{how}").reshape(-1)
    return _changed(xp, value, rows, updates, how, indices.shape[-1])


@changed_rows_.infer
@changed_slices_.infer
def _(value: Spec, indices: Spec, updates: Spec, *, how: str) -> Spec:
    return value


changed_rows_.refuses = True
changed_rows_.cases = [case((4, 3), ints(5, below=4), (5, 3), how=how)
                       for how in ("update", "add", "mul", "max")]
changed_slices_.refuses = True
changed_slices_.cases = [case((4, 3), ints(5, 2, below=3), (5,), how=how)
                         for how in ("update", "sub")]


def _assigned(variable: Variable, change: Any, how: str, index: Tensor, values: Tensor) -> Any:
    """The variable after `change`."""
    state = variable._resource_()
    with paused():
        y = change(state._value, index, values, how=how)
    return variable._written(y, True, values, state)


def _updates(variable: Variable, given: TensorLike, wanted: tuple[int, ...], name: str) -> Tensor:
    """`given` in the variable's dtype and in the shape `wanted`; a scalar is repeated."""
    like = variable._resource_()._value
    values = convert_like(given, like._t, name)
    if values.dtype is not like.dtype:
        raise InvalidArgumentError(f"{name}: the Variable '{variable.name}' is {like.dtype!r}, the "
                                   f"values {values.dtype!r}; write tf.cast(values, "
                                   f"tf.{like.dtype.name})")
    same_device(name, (like, values))
    if values.spec.shape == ():
        with paused():
            return broadcast_to_(values, shape=wanted)
    if values.spec.shape != wanted:
        raise InvalidArgumentError(f"{name}: for the Variable '{variable.name}' of shape "
                                   f"{variable.shape} the values must have shape {list(wanted)}; "
                                   f"got {values.spec}")
    return values


def scatter(variable: Variable, sparse_delta: TensorLike, how: str) -> Variable:
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
    return _assigned(variable, changed_rows_, how, index, values)


def scatter_nd(variable: Variable, indices: TensorLike, updates: TensorLike, how: str) -> Variable:
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
    return _assigned(variable, changed_slices_, how, index, values)


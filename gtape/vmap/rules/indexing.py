"""Batching rules of gathers, scatters and segments.

Where the indices are the same for all elements, their axis goes behind the rows. Otherwise the
elements are parts of one larger table: an index gets the number of its element in front, or, as a
plain number, is moved by the rows of the elements before.
"""

from __future__ import annotations

from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.elementwise.scalars import add, greater_equal, less, logical_and, where
from gtape.ops.indexing import gathering, scattering, segments, unique
from gtape.ops.indexing.gathering import gather_
from gtape.ops.random import functions
from gtape.ops.shape.layout import broadcast_to_, reshape_
from gtape.ops.shape.packing import concat_
from gtape.vmap.operand import Attrs, Operand, batches, moved
from gtape.vmap.rules.axes import Operands, run


def _numbers(indices: Operand, step: int, shape: tuple[int, ...]) -> EagerTensor:
    """0, step, 2 step … for the elements, in the dtype of the indices."""
    array_type = indices.array_type
    with array_type.device.scope():
        numbers = array_type.xp.arange(indices.size) * step
        return EagerTensor(numbers.astype(array_type.dtype.np_dtype).reshape(shape), array_type)


def _flat(indices: Operand, rows: int) -> Tensor:
    """Indices of the rows of all elements below each other; what was outside stays outside."""
    index = indices.full()
    first = _numbers(indices, rows, (indices.size,) + (1,) * len(indices.shape))
    # Moved, an index outside its element would be a row of another element.
    inside = logical_and(greater_equal(index, 0), less(index, rows))
    beyond = where(less(index, 0), index, rows * indices.size)
    return where(inside, add(index, first), beyond)


def _joined(x: Operand) -> Tensor:
    """The rows of all elements below each other."""
    return reshape_(x.full(), shape=(x.size * x.shape[0], *x.shape[1:]))


@batches(gather_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    params, indices = xs
    axis = attrs["axis"]
    if not indices.batched:
        return gather_(params.tensor, indices.tensor, axis=axis + 1)
    if not params.batched:
        return moved(gather_(params.tensor, indices.tensor, axis=axis), axis, 0)
    first = Operand.of(moved(params.tensor, axis + 1, 1))
    gathered = gather_(_joined(first), _flat(indices, first.shape[0]), axis=0)
    for i in range(axis):
        gathered = moved(gathered, 1 + len(indices.shape) + i, 1 + i)
    return gathered


@batches(functions.shuffle_, unique.unique_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, order = xs
    return None if order.batched else gather_(x.tensor, order.tensor, axis=1)


@batches(gathering.scatter_rows_, gathering.rows_or_zero_, segments.segment_extreme_,
         segments.segment_prod_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    x, indices = xs
    if not indices.batched:
        return moved(run(op, [x.along(1), indices.tensor], attrs)[0], 1, 0)
    if op.name == "rows_or_zero_":
        flat = reshape_(_flat(indices, x.shape[0]), shape=(x.size * indices.shape[0],))
        (computed,) = run(op, [_joined(x), flat], attrs)
        return reshape_(computed, shape=(x.size, indices.shape[0], *x.shape[1:]))
    name = "rows" if op.name == "scatter_rows_" else "count"
    rows = attrs[name]
    flat = reshape_(_flat(indices, rows), shape=(x.size * indices.shape[0],))
    (computed,) = run(op, [_joined(x), flat], attrs | {name: rows * x.size})
    return reshape_(computed, shape=(x.size, rows, *x.shape[1:]))


def _numbered(indices: Operand) -> Tensor:
    """Index tuples with the number of their element in front."""
    whole = indices.full()
    shape = (*whole.spec.shape[:-1], 1)
    first = _numbers(indices, 1, (indices.size,) + (1,) * len(indices.shape))
    return concat_(broadcast_to_(first, shape=shape), whole, axis=len(shape) - 1)


@batches(gathering.gather_nd_, gathering.scatter_nd_, scattering.tensor_scatter_update_,
         scattering.tensor_scatter_max_, scattering.tensor_scatter_min_, scattering.cleared_,
         scattering.gather_last_, scattering.put_last_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    at = op.params.index("indices")
    if op.name == "gather_nd_" and not xs[0].batched:
        return run(op, [x.tensor for x in xs], attrs)
    if "shape" in attrs:
        attrs = attrs | {"shape": (xs[0].size, *attrs["shape"])}
    return run(op, [_numbered(x) if i == at else x.full() for i, x in enumerate(xs)], attrs)

"""Batching rules of ops that rearrange elements."""

from __future__ import annotations

import math
from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import Tensor
from gtape.ops.indexing import getitem
from gtape.ops.indexing.getitem import WHOLE_AXIS
from gtape.ops.reductions import reductions
from gtape.ops.shape import layout, padding
from gtape.ops.shape.layout import broadcast_to_, reshape_, sum_to_
from gtape.vmap.operand import Attrs, Operand, batches
from gtape.vmap.rules.axes import Operands, behind, run


@batches(reshape_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor | Operand:
    (x,), shape = xs, attrs["shape"]
    if x.diagonal is not None:
        # A diagonal stays one: its places are flat positions, which reshaping keeps.
        lead = x.shape[:x.lead]
        if shape[:x.lead] == lead:
            return Operand.onehot(reshape_(x.diagonal, shape=shape), x.lead, x.ones)
    return x.reshaped(shape)


@batches(broadcast_to_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    (x,), shape = xs, attrs["shape"]
    return broadcast_to_(x.aligned(len(shape)), shape=(x.size, *shape))


@batches(sum_to_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    (x,), shape = xs, attrs["shape"]
    padded = (1,) * (len(x.shape) - len(shape)) + tuple(shape)
    summed = sum_to_(x.tensor, shape=(x.size, *padded))
    return summed if padded == shape else reshape_(summed, shape=(x.size, *shape))


@batches(reductions.broadcast_in_dim_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    (x,) = xs
    return run(op, [x.tensor], {"shape": (x.size, *attrs["shape"]), "axis": behind(attrs["axis"])})


@batches(layout.transpose_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [xs[0].tensor], {"perm": (0, *behind(attrs["perm"]))})


@batches(padding.pad_, padding.mirror_pad_, padding.mirror_fold_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return run(op, [xs[0].tensor], attrs | {"paddings": ((0, 0), *attrs["paddings"])})


@batches(getitem.getitem_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [xs[0].tensor], {"key": (WHOLE_AXIS, *attrs["key"])})


@batches(getitem.put_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    (x,), shape = xs, tuple(attrs["shape"])
    everything = math.prod(shape) == math.prod(x.shape) and all(
        e is None or type(e) is int or e == WHOLE_AXIS for e in attrs["key"])
    if everything and x.diagonal is not None and not x.lead:
        return Operand.onehot(reshape_(x.diagonal, shape=shape), 0, x.ones)
    if everything:
        return x.reshaped(shape)
    return run(op, [x.tensor], {"key": (WHOLE_AXIS, *attrs["key"]), "shape": (x.size, *shape)})

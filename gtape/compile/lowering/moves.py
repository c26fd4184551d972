"""Elements repeated or moved: tile, repeat, roll, diagonals, bands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, iota, lowers
from gtape.compile.ir.nodes import LibraryCall, StridedLayout, Value, dense
from gtape.compile.lowering.indexing import compact, placed
from gtape.compile.schedule.plan import nbytes
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.elementwise import scalars
from gtape.ops.linalg import diagonals
from gtape.ops.reductions import cumulative
from gtape.ops.shape import arranging, casting

Attrs = dict[str, Any]


def _ready(*values: Value) -> bool:
    return all(v.dtype in C_TYPES and v.size for v in values)


@lowers(arranging.roll_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    if not _ready(value):
        return None
    shape, strides = value.shape, dense(value.shape)
    moved = [0] * len(shape)
    for by, axis in zip(attrs["shift"], attrs["axis"]):
        moved[axis] = (moved[axis] + by) % shape[axis]
    # Of each axis the part that stays in order, and the part that enters at the other end.
    pieces = [[(0, n - by, by)] + ([(n - by, by, 0)] if by else [])
              for n, by in zip(shape, moved)]
    parts = []
    for piece in itertools.product(*pieces):
        starts, lengths, places = zip(*piece)
        cut = b.sliced(value, starts, (1,) * len(shape), lengths)
        parts.append((cut, StridedLayout(strides, sum(p * s for p, s in zip(places, strides)))))
    return placed(b, "roll", parts, shape, value.dtype, None)


@lowers(cumulative.shift_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), axis, by = x, attrs["axis"], attrs["by"]
    if not _ready(value):
        return None
    shape, strides = value.shape, dense(value.shape)
    parts = []
    if shape[axis] > 1:
        kept = tuple(n - 1 if i == axis else n for i, n in enumerate(shape))
        starts = [1 if i == axis and by < 0 else 0 for i in range(len(shape))]
        cut = b.sliced(value, starts, [1] * len(shape), kept)
        parts.append((cut, StridedLayout(strides, strides[axis] if by > 0 else 0)))
    return placed(b, "shift", parts, shape, value.dtype, attrs["fill"])


# ---------------------------------------------------------------- diagonals
@lowers(diagonals.band_part_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    if not _ready(value):
        return None
    rows, columns = value.shape[-2:]
    # How far an element is from the diagonal, computed where it is used: no mask in memory.
    step = elementwise(b, scalars.subtract, iota(b, columns, "int32"),
                       b.reshaped(iota(b, rows, "int32"), (rows, 1)))
    zero = b.splat(0, value.shape, value.dtype)
    lower, upper = (b.splat(n, (), "int32") for n in (-attrs["lower"], attrs["upper"]))
    if attrs["lower"] >= 0:
        below = elementwise(b, scalars.less, step, lower)
        value = elementwise(b, scalars.where, below, zero, value)
    if attrs["upper"] >= 0:
        above = elementwise(b, scalars.greater, step, upper)
        value = elementwise(b, scalars.where, above, zero, value)
    return value


def _diagonal(shape: Sequence[int], d: int) -> tuple[int, StridedLayout]:
    """The length of a diagonal of matrices, and where it lies."""
    rows, columns = shape[-2:]
    *batch, _, _ = dense(tuple(shape))
    length = max(0, min(rows + min(d, 0), columns - max(d, 0)))
    return length, StridedLayout((*batch, columns + 1), max(-d, 0) * columns + max(d, 0))


@lowers(diagonals.diag_part_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), (low, high) = x, attrs["k"]
    if not _ready(value) or low != high:
        return None
    length, layout = _diagonal(value.shape, low)
    return b.view(value, (*value.shape[:-2], length), layout, None) if length else None


@lowers(diagonals.diag_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), (low, high) = x, attrs["k"]
    if not _ready(value) or low != high:
        return None
    shape = tuple(specs[0].shape)
    return placed(b, "diag", [(value, _diagonal(shape, low)[1])], shape, value.dtype,
                  attrs["padding"])


@lowers(diagonals.set_diag_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, diagonal = x
    low, high = attrs["k"]
    if not _ready(value, diagonal) or low != high:
        return None
    parts = [(value, StridedLayout(dense(value.shape))), (diagonal, _diagonal(value.shape, low)[1])]
    return placed(b, "set diag", parts, value.shape, value.dtype, None)


@lowers(casting.bitcast_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), (spec,) = x, specs
    if not _ready(value) or spec.dtype.name not in C_TYPES:
        return None
    size = nbytes(value)

    def emit(program: Any, node: LibraryCall) -> str:
        return (f"__builtin_memcpy({program.pointer(node.outputs[0])}, "
                f"{program.pointer(node.inputs[0])}, {size});")

    node = LibraryCall("bitcast", (compact(b, value),), spec.dtype.name, (), emit)
    return b.library(node, [(tuple(spec.shape), spec.dtype.name)])[0]

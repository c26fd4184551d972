"""Ops that move elements: views where the strides allow it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, lowers
from gtape.compile.ir.nodes import Value
from gtape.core.dtypes import FLOATS
from gtape.core.spec import Spec
from gtape.ops.elementwise import scalars
from gtape.ops.indexing import getitem
from gtape.ops.shape import arranging, casting, identity, layout, packing
from gtape.trace.custom_op import CustomStep

#: The integers of what width NumPy's casts of floats go through on x86.
_BY_WAY_OF = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32"}
_X86 = platform.machine().lower() in ("x86_64", "amd64")

Attrs = dict[str, Any]


@lowers(identity.identity_, identity.stop_gradient_, identity.assigned_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return x[0]


@lowers(identity.move_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    return x[0] if attrs["device"].is_host else None


@lowers(CustomStep)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Sequence[Value]:
    return x[attrs["count"]: attrs["count"] + attrs["size"]]


@lowers(identity.optimization_barrier_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.optimization_barrier(x[0])


@lowers(layout.reshape_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.reshaped(x[0], attrs["shape"])


@lowers(layout.broadcast_to_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.stretched(x[0], attrs["shape"])


@lowers(layout.transpose_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.transposed(x[0], attrs["perm"])


@lowers(casting.cast_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    wanted = attrs["dtype"].name
    if any(d.startswith("complex") or d == "string" for d in (wanted, x[0].dtype)):
        return None
    if x[0].dtype in FLOATS and wanted not in (*FLOATS, "bool"):
        return _truncated(b, x[0], wanted)
    return b.cast(x[0], wanted)


def _positions(shape: tuple[int, ...], key: Any) -> tuple[list[int], list[int], list[int],
                                                          list[int | None]]:
    """Starts and steps by axis, the lengths, and which axis each axis of the result is."""
    starts, steps, lengths = [0] * len(shape), [1] * len(shape), list(shape)
    axes: list[int | None] = []
    axis = 0
    for entry in key:
        if entry is None:
            axes.append(None)
            continue
        if type(entry) is tuple:
            span = range(*slice(*entry[1:]).indices(shape[axis]))
            # Of nothing the start may lie outside, where no view may begin.
            starts[axis], steps[axis] = (span.start, span.step) if len(span) else (0, 1)
            lengths[axis] = len(span)
            axes.append(axis)
        else:
            starts[axis], lengths[axis] = entry % shape[axis], 1
        axis += 1
    return starts, steps, lengths, [*axes, *range(axis, len(shape))]


@lowers(getitem.getitem_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    starts, steps, lengths, _ = _positions(x[0].shape, attrs["key"])
    cut = b.sliced(x[0], starts, steps, tuple(lengths))
    return b.reshaped(cut, tuple(specs[0].shape))


@lowers(packing.split_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value]:
    axis, start, parts = attrs["axis"], 0, []
    for count in attrs["sizes"]:
        starts = [0] * len(x[0].shape)
        starts[axis] = start
        shape = tuple(count if i == axis else n for i, n in enumerate(x[0].shape))
        parts.append(b.sliced(x[0], starts, [1] * len(shape), shape))
        start += count
    return parts


@lowers(packing.unstack_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value]:
    axis, parts = attrs["axis"], []
    shape = tuple(1 if i == axis else n for i, n in enumerate(x[0].shape))
    for at, spec in enumerate(specs):
        starts = [0] * len(shape)
        starts[axis] = at
        cut = b.sliced(x[0], starts, [1] * len(shape), shape)
        parts.append(b.reshaped(cut, tuple(spec.shape)))
    return parts


@lowers(arranging.reverse_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    shape = x[0].shape
    flipped = {a % len(shape) for a in attrs["axis"]}
    starts = [n - 1 if i in flipped and n else 0 for i, n in enumerate(shape)]
    return b.sliced(x[0], starts, [-1 if i in flipped else 1 for i in range(len(shape))], shape)


def _truncated(b: Builder, x: Value, dtype: str) -> Value | None:
    """Floats as integers. What does not fit C++ leaves open, and NumPy to the CPU: on x86 it is the
    lowest int32 or int64, whose low bits the smaller integers take. None elsewhere."""
    wide = _BY_WAY_OF.get(dtype, dtype)
    if wide not in ("int32", "int64") or not _X86:
        return None
    if x.dtype in ("float16", "bfloat16"):
        x = b.cast(x, "float32")
    limit = 2.0 ** 31 if wide == "int32" else 2.0 ** 63
    lowest = b.splat(-limit, x.shape, x.dtype)
    fits = elementwise(b, scalars.logical_and, elementwise(b, scalars.greater_equal, x, lowest),
                       elementwise(b, scalars.less, x, b.splat(limit, x.shape, x.dtype)))
    return b.cast(b.cast(elementwise(b, scalars.where, fits, x, lowest), wide), dtype)

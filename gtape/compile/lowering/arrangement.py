"""Ops that move elements: views where the strides allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import Value
from gtape.compile.lowering.casts import truncated
from gtape.core.spec import Spec
from gtape.ops.indexing import getitem
from gtape.ops.reductions import reductions
from gtape.ops.shape import arranging, casting, identity, layout, packing, transfer
from gtape.trace.custom_step import CustomStep

Attrs = dict[str, Any]


@lowers(layout.identity_, identity.stop_gradient_, identity.assigned_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return x[0]


@lowers(transfer.move_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    return x[0] if attrs["device"].is_host else None


@lowers(CustomStep)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Sequence[Value]:
    return x[attrs["count"]: attrs["count"] + attrs["size"]]


@lowers(layout.optimization_barrier_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.optimization_barrier(x[0])


@lowers(layout.reshape_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.reshaped(x[0], attrs["shape"])


@lowers(layout.broadcast_to_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.stretched(x[0], attrs["shape"])


@lowers(reductions.broadcast_in_dim_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    shape, axis = attrs["shape"], attrs["axis"]
    kept = tuple(1 if i in axis else n for i, n in enumerate(shape))
    return b.stretched(b.reshaped(x[0], kept), shape)


@lowers(layout.transpose_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return b.transposed(x[0], attrs["perm"])


@lowers(casting.cast_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    wanted = attrs["dtype"].name
    if any(d.startswith("complex") or d == "string" for d in (wanted, x[0].dtype)):
        return None
    floating = ("float16", "bfloat16", "float32", "float64")
    if x[0].dtype in floating and wanted not in (*floating, "bool"):
        return truncated(b, x[0], wanted)
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
    axis, start, made = attrs["axis"], 0, []
    for count in attrs["sizes"]:
        starts = [0] * len(x[0].shape)
        starts[axis] = start
        shape = tuple(count if i == axis else n for i, n in enumerate(x[0].shape))
        made.append(b.sliced(x[0], starts, [1] * len(shape), shape))
        start += count
    return made


@lowers(packing.unstack_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value]:
    axis, made = attrs["axis"], []
    shape = tuple(1 if i == axis else n for i, n in enumerate(x[0].shape))
    for at, spec in enumerate(specs):
        starts = [0] * len(shape)
        starts[axis] = at
        cut = b.sliced(x[0], starts, [1] * len(shape), shape)
        made.append(b.reshaped(cut, tuple(spec.shape)))
    return made


@lowers(arranging.reverse_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    shape = x[0].shape
    flipped = {a % len(shape) for a in attrs["axis"]}
    starts = [n - 1 if i in flipped and n else 0 for i, n in enumerate(shape)]
    return b.sliced(x[0], starts, [-1 if i in flipped else 1 for i in range(len(shape))], shape)

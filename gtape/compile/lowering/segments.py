"""Elements picked along rows, and rows counted and compared by segment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, Value
from gtape.compile.lowering.indexing import ADDED, compact, indices_fit, within
from gtape.core.dtypes import int64
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES, number
from gtape.ops.indexing import segments, sorting
from gtape.ops.reductions import histograms
from gtape.ops.shape import arranging

Attrs = dict[str, Any]
_HEADER = ("cpu_indexing.h",)


def _called(b: Builder, function: str, inputs: Sequence[Value], spec: Spec, arguments: str,
            scratch: int = 0) -> Value:
    """One call: the pointers of the inputs and of the result, then `arguments`."""
    def emit(program: Any, node: LibraryCall) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        return f"{function}({pointers}, {arguments});"

    name = function.split("<")[0].replace("_", " ")
    node = LibraryCall(name, [compact(b, v) for v in inputs], (function, arguments), _HEADER, emit,
                       scratch)
    return b.library(node, [(tuple(spec.shape), spec.dtype.name)])[0]


def _along(op: Op, function: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        value, indices = x
        length = attrs.get("length", value.shape[-1])
        if value.dtype not in C_TYPES or not value.size or not indices_fit(indices):
            return None
        within(b, indices, length, f"{op.name[:-1]}: indices must lie in [-{length}, {length})",
               low=-length)
        rows, count = math.prod(indices.shape[:-1]), indices.shape[-1]
        return _called(b, function, x, specs[0], f"{rows}L, {length}L, {count}L")


_along(sorting.take_along_, "take_along")
_along(sorting.put_along_, "put_along")


@lowers(arranging.reverse_sequence_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, lengths = x
    if value.dtype not in C_TYPES or not value.size or not indices_fit(lengths):
        return None
    rank, first = len(value.shape), (attrs["batch_axis"], attrs["seq_axis"])
    order = (*first, *(i for i in range(rank) if i not in first))
    moved = b.transposed(value, order)
    batch, steps, *rest = moved.shape
    within(b, lengths, steps + 1, f"reverse_sequence: seq_lengths must lie in [0, {steps + 1})")
    turned = _called(b, "reverse_starts", (moved, lengths), Spec(moved.shape, specs[0].dtype),
                     f"{batch}L, {steps}L, {math.prod(rest)}L")
    return b.transposed(turned, tuple(order.index(i) for i in range(rank)))


# ---------------------------------------------------------------- segments
@lowers(histograms.counts_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (ids,) = x
    if not indices_fit(ids) or not attrs["count"]:
        return None
    return _called(b, "count_indices", x, specs[0], f"{ids.size}L, {attrs['count']}L, 0")


@lowers(segments.sizes_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (ids,), (spec,) = x, specs
    if not indices_fit(ids) or not attrs["count"] or spec.dtype.name not in ADDED:
        return None
    counts = _called(b, "count_indices", x, Spec(spec.shape, int64),
                     f"{ids.size}L, {attrs['count']}L, 1")
    return b.cast(counts, spec.dtype.name)


@lowers(segments.segment_extreme_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value, ids), (spec,) = x, specs
    count, largest = attrs["count"], attrs["largest"]
    if value.dtype not in ADDED or not value.size or not indices_fit(ids) or not count:
        return None
    kind = np.dtype(spec.dtype.np_dtype)
    limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    empty = 0 if attrs["zeros"] else (limits.min if largest else limits.max).item() if (
        kind.kind == "f") else int(limits.min if largest else limits.max)
    inner = math.prod(value.shape[1:])
    return _called(b, f"segment_extremes<{'true' if largest else 'false'}>", x, spec,
                   f"{count}L, {inner}L, {ids.size}L, {number(empty, value.dtype)}, scratch",
                   count)

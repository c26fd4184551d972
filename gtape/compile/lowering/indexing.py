"""Rows by index: gathered, added up, counted and compared by segment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.ir.builder import Attrs, Builder, invoked, lowers, ready
from gtape.compile.ir.nodes import Value
from gtape.compile.lowering.checks import within
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.numerics.scatter import CROWD, DENSE
from gtape.opdef.cuda_text import C_TYPES, number
from gtape.ops.indexing import gathering, segments, sorting
from gtape.ops.reductions import histograms
from gtape.ops.shape import arranging

_HEADER = ("cpu_indexing.h",)
#: What the functions of cpu_indexing.h add.
_ADDED = ("float32", "float64", "int32", "int64")


def indices_fit(x: Value) -> bool:
    """Whether there are indices, of a dtype that templates are written for."""
    return x.dtype in ("int32", "int64", "uint8") and x.size > 0


def _adds(x: Value) -> bool:
    return x.dtype in _ADDED and x.size > 0


def _gathered(b: Builder, table: Value, indices: Value, axis: int, shape: Sequence[int],
              zeros: bool = False) -> Value:
    outer, inner = math.prod(table.shape[:axis]), math.prod(table.shape[axis + 1:])
    text = invoked("gather_rows", outer, table.shape[axis], inner, indices.size,
                   "true" if zeros else "false")
    # `ir.sparse_updates` knows by this key what is gathered, and makes such calls itself.
    return b.call("gather", text, [table, indices], (shape, table.dtype), _HEADER,
                  key=(axis, zeros))


@lowers(gathering.gather_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or not ready(table):
        return None
    rows = table.shape[attrs["axis"]]
    within(b, indices, rows, f"gather: indices must lie in [0, {rows})")
    return _gathered(b, table, indices, attrs["axis"], specs[0].shape)


@lowers(gathering.rows_or_zero_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or not ready(table):
        return None
    return _gathered(b, table, indices, 0, specs[0].shape, zeros=True)


def _scattered(b: Builder, value: Value, indices: Value, shape: Sequence[int]) -> Value:
    """Rows added up in zeros of `shape`."""
    rows, inner, count = shape[0], math.prod(shape[1:]), indices.size
    # As the eager op does, so that both round alike: see `numerics.scatter`.
    if value.dtype == "float32" and count > CROWD and count >= DENSE * rows:
        text = invoked("scatter_wide", "(double*)scratch", rows, inner, count)
        return b.call("wide scatter", text, [value, indices], (shape, value.dtype), _HEADER,
                      scratch=8 * rows * inner)
    text = invoked("scatter_rows", rows, inner, count, f"({C_TYPES[value.dtype]})1", "true")
    return b.call("scatter", text, [value, indices], (shape, value.dtype), _HEADER)


@lowers(gathering.scatter_rows_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, indices = x
    if not indices_fit(indices) or not _adds(value):
        return None
    rows = attrs["rows"]
    within(b, indices, rows, f"the indices of rows to add must be below {rows}", low=None)
    return _scattered(b, value, indices, specs[0].shape)


# ---------------------------------------------------------------- index tuples
def flat_rows(b: Builder, indices: Value, shape: Sequence[int], name: str) -> Value:
    """Index tuples as int64 numbers of rows, checked at run time to lie in `shape`."""
    depth = indices.shape[-1]
    count, lengths = indices.size // depth, ", ".join(map(str, shape[:depth]))
    return b.call("flat rows", invoked(f"flat_rows<{lengths}>", f"{count}L"), [indices],
                  ((count,), "int64"), _HEADER,
                  checks=f"{name}: every index must lie in the shape [{lengths}]")


@lowers(gathering.gather_nd_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or not ready(table):
        return None
    depth = indices.shape[-1]
    rows = flat_rows(b, indices, table.shape, "gather_nd")
    flat = b.reshaped(table, (math.prod(table.shape[:depth]), *table.shape[depth:]))
    return _gathered(b, flat, rows, 0, specs[0].shape)


@lowers(gathering.scatter_nd_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    indices, value = x
    shape = tuple(specs[0].shape)
    if not indices_fit(indices) or not _adds(value):
        return None
    rows, depth = flat_rows(b, indices, shape, "scatter_nd"), indices.shape[-1]
    flat = (math.prod(shape[:depth]), *shape[depth:])
    return b.reshaped(_scattered(b, value, rows, flat), shape)


# ---------------------------------------------------------------- along rows
def _along(op: Op, function: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        value, indices = x
        length = attrs.get("length", value.shape[-1])
        if not ready(value) or not indices_fit(indices):
            return None
        within(b, indices, length, f"{op.name[:-1]}: indices must lie in [-{length}, {length})",
               low=-length)
        sizes = (math.prod(indices.shape[:-1]), length, indices.shape[-1])
        return _called(b, function, x, specs[0], *(f"{n}L" for n in sizes))


def _called(b: Builder, function: str, inputs: Sequence[Value], result: Any, *arguments: object,
            scratch: int = 0) -> Value:
    return b.call(function.split("<")[0].replace("_", " "), invoked(function, *arguments), inputs,
                  result, _HEADER, scratch=scratch)


_along(sorting.take_along_, "take_along")
_along(sorting.put_along_, "put_along")


@lowers(arranging.reverse_sequence_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, lengths = x
    if not ready(value) or not indices_fit(lengths):
        return None
    rank, first = len(value.shape), (attrs["batch_axis"], attrs["seq_axis"])
    order = (*first, *(i for i in range(rank) if i not in first))
    moved = b.transposed(value, order)
    batch, steps, *rest = moved.shape
    within(b, lengths, steps + 1, f"reverse_sequence: seq_lengths must lie in [0, {steps + 1})")
    turned = _called(b, "reverse_starts", (moved, lengths), (moved.shape, value.dtype),
                     f"{batch}L", f"{steps}L", f"{math.prod(rest)}L")
    return b.transposed(turned, tuple(order.index(i) for i in range(rank)))


# ---------------------------------------------------------------- segments
@lowers(histograms.counts_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not indices_fit(x[0]) or not attrs["count"]:
        return None
    return _called(b, "count_indices", x, specs[0], f"{x[0].size}L", f"{attrs['count']}L", 0)


@lowers(segments.sizes_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (ids,), (spec,) = x, specs
    if not indices_fit(ids) or not attrs["count"] or spec.dtype.name not in _ADDED:
        return None
    counts = _called(b, "count_indices", x, (spec.shape, "int64"), f"{ids.size}L",
                     f"{attrs['count']}L", 1)
    return b.cast(counts, spec.dtype.name)


@lowers(segments.segment_extreme_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value, ids), count, largest = x, attrs["count"], attrs["largest"]
    if not _adds(value) or not indices_fit(ids) or not count:
        return None
    kind = np.dtype(specs[0].dtype.np_dtype)
    limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    # What a segment without rows gives: see the op.
    empty = 0 if attrs["zeros"] else kind.type(limits.min if largest else limits.max).item()
    inner = math.prod(value.shape[1:])
    return _called(b, f"segment_extremes<{'true' if largest else 'false'}>", x, specs[0],
                   f"{count}L", f"{inner}L", f"{ids.size}L", number(empty, value.dtype), "scratch",
                   scratch=count)

"""Rows by index, and arrays put together of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, StridedLayout, Value, View, dense
from gtape.compile.lowering.arrangement import _positions
from gtape.core.spec import Spec
from gtape.numerics.scatter import CROWD, DENSE
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.indexing import gathering, getitem
from gtape.ops.shape import packing, padding

Attrs = dict[str, Any]
_HEADER = ("cpu_indexing.h",)


def indices_fit(x: Value) -> bool:
    """Whether there are indices, of a dtype that templates are written for."""
    return x.dtype in ("int32", "int64", "uint8") and x.size > 0


def compact(b: Builder, x: Value) -> Value:
    """`x` itself, or a dense copy of a view."""
    return b.copied(x) if isinstance(x.node, View) else x


def within(b: Builder, indices: Value, limit: int | None, what: str, *,
           low: int | None = 0) -> None:
    """A test at run time that all indices lie in [low, limit); None is no bound."""
    # Before any step that uses the indices, in a pass of its own: those then go without bounds, and
    # nothing is written when one is wrong.
    flat = compact(b, indices)
    bounds = ["-__LONG_MAX__ - 1" if low is None else f"{low}L",
              "__LONG_MAX__" if limit is None else f"{limit}L"]

    def emit(program: Any, node: LibraryCall) -> str:
        return (f"all_within({program.pointer(node.inputs[0])}, {node.inputs[0].size}L, "
                f"{', '.join(bounds)})")

    b.library(LibraryCall("within", (flat,), (limit, low, what), _HEADER, emit, checks=what), ())


@lowers(gathering.within_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    low, high, what = attrs["low"], attrs["high"], attrs["what"]
    if x[0].dtype not in C_TYPES or x[0].dtype == "uint64":
        return None
    if x[0].size and (low, high) != (None, None):
        must = (f"must be >= {low}" if high is None else f"must be below {high}" if low is None
                else f"must lie in [{low}, {high})")
        within(b, x[0], high, f"{what} {must}", low=low)
    return x[0]


def _gathered(b: Builder, table: Value, indices: Value, axis: int, shape: Sequence[int],
              zeros: bool) -> Value:
    outer, inner = math.prod(table.shape[:axis]), math.prod(table.shape[axis + 1:])
    rows, count = table.shape[axis], indices.size

    def emit(program: Any, node: LibraryCall) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        return (f"gather_rows({pointers}, {outer}, {rows}, {inner}, {count}, "
                f"{'true' if zeros else 'false'});")

    node = LibraryCall("gather", (compact(b, table), compact(b, indices)), (axis, zeros), _HEADER,
                       emit)
    return b.library(node, [(tuple(shape), table.dtype)])[0]


@lowers(gathering.gather_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or table.dtype not in C_TYPES or not table.size:
        return None
    rows = table.shape[attrs["axis"]]
    within(b, indices, rows, f"gather: indices must lie in [0, {rows})")
    return _gathered(b, table, indices, attrs["axis"], specs[0].shape, False)


@lowers(gathering.rows_or_zero_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or table.dtype not in C_TYPES or not table.size:
        return None
    return _gathered(b, table, indices, 0, specs[0].shape, True)


#: What the functions of cpu_indexing.h add.
ADDED = ("float32", "float64", "int32", "int64")


def _scattered(b: Builder, value: Value, indices: Value, shape: Sequence[int]) -> Value:
    """Rows added up in zeros of `shape`."""
    rows, inner, count = shape[0], math.prod(shape[1:]), indices.size
    # As the eager op does, so that both round alike: see `numerics.scatter`.
    wide = value.dtype == "float32" and count > CROWD and count >= DENSE * rows

    def emit(program: Any, node: LibraryCall) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        if wide:
            return f"scatter_wide({pointers}, (double*)scratch, {rows}, {inner}, {count});"
        return (f"scatter_rows({pointers}, {rows}, {inner}, {count}, "
                f"({C_TYPES[value.dtype]})1, true);")

    node = LibraryCall("wide scatter" if wide else "scatter",
                       (compact(b, value), compact(b, indices)),
                       rows, _HEADER, emit, 8 * rows * inner if wide else 0)
    return b.library(node, [(tuple(shape), value.dtype)])[0]


@lowers(gathering.scatter_rows_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, indices = x
    if not indices_fit(indices) or value.dtype not in ADDED or not value.size:
        return None
    rows = attrs["rows"]
    within(b, indices, rows, f"the indices of rows to add must be below {rows}", low=None)
    return _scattered(b, value, indices, specs[0].shape)


# ---------------------------------------------------------------- index tuples
def flat_rows(b: Builder, indices: Value, shape: Sequence[int], name: str) -> Value:
    """Index tuples as int64 numbers of rows, checked at run time to lie in `shape`."""
    depth = indices.shape[-1]
    count = indices.size // depth
    lengths = ", ".join(map(str, shape[:depth]))

    def emit(program: Any, node: LibraryCall) -> str:
        return (f"flat_rows<{lengths}>({program.pointer(node.inputs[0])}, "
                f"{program.pointer(node.outputs[0])}, {count}L)")

    checks = f"{name}: every index must lie in the shape [{lengths}]"
    node = LibraryCall("flat rows", (compact(b, indices),), (lengths, name), _HEADER, emit,
                       checks=checks)
    return b.library(node, [((count,), "int64")])[0]


@lowers(gathering.gather_nd_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not indices_fit(indices) or table.dtype not in C_TYPES or not table.size:
        return None
    depth = indices.shape[-1]
    rows = flat_rows(b, indices, table.shape, "gather_nd")
    flat = b.reshaped(table, (math.prod(table.shape[:depth]), *table.shape[depth:]))
    return _gathered(b, flat, rows, 0, specs[0].shape, False)


@lowers(gathering.scatter_nd_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    indices, value = x
    shape = tuple(specs[0].shape)
    if not indices_fit(indices) or value.dtype not in ADDED or not value.size:
        return None
    rows = flat_rows(b, indices, shape, "scatter_nd")
    depth = indices.shape[-1]
    count = math.prod(shape[:depth])
    return b.reshaped(_scattered(b, value, rows, (count, *shape[depth:])), shape)


# ---------------------------------------------------------------- arrays put together

def placed(b: Builder, name: str, parts: Sequence[tuple[Value, StridedLayout]],
           shape: Sequence[int], dtype: str, fill: float | None) -> Value:
    """An array of `parts`, each at its layout, over a background of `fill` (None: all is
    covered)."""
    kind = C_TYPES[dtype]
    size = math.prod(shape)

    def emit(program: Any, node: LibraryCall) -> str:
        target = program.pointer(node.outputs[0])
        lines = [f"{kind}* const y = {target};"]
        if fill is not None:
            lines.append(f"for (long i = 0; i < {size}; i++) y[i] = ({kind})({_number(fill)});")
        for value, (_, layout) in zip(node.inputs, parts):
            # The part was computed in its place here, and nothing is left to copy.
            if program.plan.is_home(node.outputs[0], value):
                continue
            _, strides, _ = program.plan.layout(value)
            lines += copied(f"y + {layout.offset}", layout.strides, program.pointer(value),
                             strides, value.shape, kind)
        return "{ " + " ".join(lines) + " }" if len(lines) > 1 else ""

    key = (tuple(layout for _, layout in parts), tuple(shape), repr(fill))
    node = LibraryCall(name, [v for v, _ in parts], key, (), emit)
    if name in ("concat", "stack"):
        node.parts = key[0]
    return b.library(node, [(tuple(shape), dtype)])[0]


def _number(fill: Any) -> str:
    text = repr(float(fill)) if isinstance(fill, float) else repr(int(fill))
    return {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()",
            "nan": "__builtin_nanf(\"\")"}.get(text, text)


def copied(target: str, to: Sequence[int], source: str, start: Sequence[int],
           shape: Sequence[int], kind: str, letter: str = "") -> list[str]:
    """Loops that copy an array of `shape` between two layouts, or add or subtract it ("+", "-")."""
    axes = [(n, t, s) for n, t, s in zip(shape, to, start) if n != 1]
    joined: list[tuple[int, int, int]] = []
    for n, t, s in axes:
        if joined and joined[-1][1] == t * n and joined[-1][2] == s * n:
            joined[-1] = (joined[-1][0] * n, t, s)
        else:
            joined.append((n, t, s))
    head = [f"for (long i{i} = 0; i{i} < {n}; i{i}++)" for i, (n, _, _) in enumerate(joined)]
    there = " + ".join(["0", *(f"i{i} * {t}" for i, (_, t, _) in enumerate(joined))])
    here = " + ".join(["0", *(f"i{i} * {s}" for i, (_, _, s) in enumerate(joined))])
    old = f"({target})[{there}] {letter} " if letter else ""
    return [*head, f"({target})[{there}] = {old}(({kind}*){source})[{here}];"]


def _usable(*values: Value) -> bool:
    return all(v.dtype in C_TYPES for v in values)


@lowers(packing.concat_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _usable(*x):
        return None
    shape, axis = tuple(specs[0].shape), attrs["axis"] % len(specs[0].shape)
    strides, at, parts = dense(shape), 0, []
    for value in x:
        if value.size:
            parts.append((value, StridedLayout(strides, at * strides[axis])))
        at += value.shape[axis]
    return placed(b, "concat", parts, shape, x[0].dtype, None)


@lowers(packing.stack_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _usable(*x) or not x[0].size:
        return None
    shape = tuple(specs[0].shape)
    axis = attrs["axis"] % len(shape)
    strides = dense(shape)
    rest = (*strides[:axis], *strides[axis + 1:])
    parts = [(value, StridedLayout(rest, i * strides[axis])) for i, value in enumerate(x)]
    return placed(b, "stack", parts, shape, x[0].dtype, None)


@lowers(padding.pad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    fill = attrs["value"]
    if not _usable(value) or not value.size or not isinstance(fill, (int, float)):
        return None
    shape = tuple(specs[0].shape)
    strides = dense(shape)
    offset = sum(low * s for (low, _), s in zip(attrs["paddings"], strides))
    return placed(b, "pad", [(value, StridedLayout(strides, offset))], shape, value.dtype, fill)


@lowers(getitem.put_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), shape = x, tuple(attrs["shape"])
    if not _usable(value) or not value.size:
        return None
    starts, steps, lengths, _ = _positions(shape, attrs["key"])
    strides = dense(shape)
    wide = b.reshaped(value, tuple(lengths))
    layout = StridedLayout(tuple(s * p for s, p in zip(steps, strides)),
                           sum(s * p for s, p in zip(starts, strides)))
    return placed(b, "put", [(wide, layout)], shape, value.dtype, 0)

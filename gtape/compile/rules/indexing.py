"""Rows by index, and arrays put together of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.builder import Builder
from gtape.compile.ir import Layout, Library, Value, View, dense
from gtape.compile.lower import lowers
from gtape.compile.rules.arrangement import _positions
from gtape.core.spec import Spec
from gtape.kinds.print_cuda import C_TYPES

Attrs = dict[str, Any]
_HEADER = ("cpu_indexing.h",)


def _indices(x: Value) -> bool:
    return x.dtype in ("int32", "int64", "uint8") and x.size > 0


def compact(b: Builder, x: Value) -> Value:
    """`x` itself, or a dense copy of a view."""
    return b.copied(x) if isinstance(x.node, View) else x


def within(b: Builder, indices: Value, limit: int, what: str, *, negative: bool = False) -> None:
    """A test at run time that all indices lie in [0, limit), or are negative where they may."""
    flat = compact(b, indices)
    low = "-__LONG_MAX__ - 1" if negative else "0"

    def emit(program: Any, node: Library) -> str:
        return (f"all_within({program.pointer(node.inputs[0])}, {node.inputs[0].size}L, {low}, "
                f"{limit}L)")

    b.library(Library("within", (flat,), (limit, low, what), _HEADER, emit, checks=what), ())


def _gathered(b: Builder, table: Value, indices: Value, axis: int, shape: Sequence[int],
              zeros: bool) -> Value:
    outer, inner = math.prod(table.shape[:axis]), math.prod(table.shape[axis + 1:])
    rows, count = table.shape[axis], indices.size

    def emit(program: Any, node: Library) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        return (f"gather_rows({pointers}, {outer}, {rows}, {inner}, {count}, "
                f"{'true' if zeros else 'false'});")

    node = Library("gather", (compact(b, table), compact(b, indices)), (axis, zeros), _HEADER, emit)
    return b.library(node, [(tuple(shape), table.dtype)])[0]


@lowers("gather_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not _indices(indices) or table.dtype not in C_TYPES or not table.size:
        return None
    rows = table.shape[attrs["axis"]]
    within(b, indices, rows, f"gather: indices must lie in [0, {rows})")
    return _gathered(b, table, indices, attrs["axis"], specs[0].shape, False)


@lowers("rows_or_zero_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not _indices(indices) or table.dtype not in C_TYPES or not table.size:
        return None
    return _gathered(b, table, indices, 0, specs[0].shape, True)


@lowers("scatter_rows_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, indices = x
    if not _indices(indices) or value.dtype not in ("float32", "float64", "int32", "int64") or (
            not value.size):
        return None
    rows, inner, count = attrs["rows"], math.prod(specs[0].shape[1:]), indices.size
    within(b, indices, rows, f"the indices of rows to add must be below {rows}", negative=True)

    def emit(program: Any, node: Library) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        return (f"scatter_rows({pointers}, {rows}, {inner}, {count}, "
                f"({C_TYPES[value.dtype]})1, true);")

    node = Library("scatter", (compact(b, value), compact(b, indices)), rows, _HEADER, emit)
    return b.library(node, [(tuple(specs[0].shape), value.dtype)])[0]


# ---------------------------------------------------------------- arrays put together

def placed(b: Builder, name: str, parts: Sequence[tuple[Value, Layout]], shape: Sequence[int],
           dtype: str, fill: Any) -> Value:
    """An array of `parts`, each at its layout, over a background of `fill` (None: all is
    covered)."""
    kind = C_TYPES[dtype]
    size = math.prod(shape)

    def emit(program: Any, node: Library) -> str:
        target = program.pointer(node.outputs[0])
        lines = [f"{kind}* const y = {target};"]
        if fill is not None:
            lines.append(f"for (long i = 0; i < {size}; i++) y[i] = ({kind})({_number(fill)});")
        for value, (_, layout) in zip(node.inputs, parts):
            _, strides, _ = program.plan.layout(value)
            lines += _copied(f"y + {layout.offset}", layout.strides, program.pointer(value),
                             strides, value.shape, kind)
        return "{ " + " ".join(lines) + " }"

    key = (tuple(layout for _, layout in parts), tuple(shape), repr(fill))
    node = Library(name, [v for v, _ in parts], key, (), emit)
    return b.library(node, [(tuple(shape), dtype)])[0]


def _number(fill: Any) -> str:
    text = repr(float(fill)) if isinstance(fill, float) else repr(int(fill))
    return {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()",
            "nan": "__builtin_nanf(\"\")"}.get(text, text)


def _copied(target: str, to: Sequence[int], source: str, start: Sequence[int],
            shape: Sequence[int], kind: str) -> list[str]:
    """Loops that copy an array of `shape` between two layouts."""
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
    return [*head, f"({target})[{there}] = (({kind}*){source})[{here}];"]


def _usable(*values: Value) -> bool:
    return all(v.dtype in C_TYPES for v in values)


@lowers("concat_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _usable(*x):
        return None
    shape, axis = tuple(specs[0].shape), attrs["axis"] % len(specs[0].shape)
    strides, at, parts = dense(shape), 0, []
    for value in x:
        if value.size:
            parts.append((value, Layout(strides, at * strides[axis])))
        at += value.shape[axis]
    return placed(b, "concat", parts, shape, x[0].dtype, None)


@lowers("stack_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _usable(*x) or not x[0].size:
        return None
    shape = tuple(specs[0].shape)
    axis = attrs["axis"] % len(shape)
    strides = dense(shape)
    rest = (*strides[:axis], *strides[axis + 1:])
    parts = [(value, Layout(rest, i * strides[axis])) for i, value in enumerate(x)]
    return placed(b, "stack", parts, shape, x[0].dtype, None)


@lowers("pad_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    fill = attrs["value"]
    if not _usable(value) or not value.size or not isinstance(fill, (int, float)):
        return None
    shape = tuple(specs[0].shape)
    strides = dense(shape)
    offset = sum(low * s for (low, _), s in zip(attrs["paddings"], strides))
    return placed(b, "pad", [(value, Layout(strides, offset))], shape, value.dtype, fill)


@lowers("put_")
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), shape = x, tuple(attrs["shape"])
    if not _usable(value) or not value.size:
        return None
    starts, steps, lengths, _ = _positions(shape, attrs["key"])
    strides = dense(shape)
    wide = b.reshaped(value, tuple(lengths))
    layout = Layout(tuple(s * p for s, p in zip(steps, strides)),
                    sum(s * p for s, p in zip(starts, strides)))
    return placed(b, "put", [(wide, layout)], shape, value.dtype, 0)

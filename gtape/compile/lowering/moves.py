"""Elements in other places: views where strides allow it, and arrays put together of others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.compile.ir.builder import Attrs, Builder, elementwise, iota, lowers, ready
from gtape.compile.ir.nodes import LibraryCall, StridedLayout, Value, dense
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.elementwise import scalars
from gtape.ops.indexing import getitem
from gtape.ops.linalg import diagonals
from gtape.ops.shape import identity, layout, packing, padding
from gtape.trace.custom_op import CustomStep


@lowers(identity.identity_, identity.stop_gradient_, identity.assigned_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return x[0]


@lowers(identity.move_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    return x[0] if attrs["device"].is_host else None


@lowers(CustomStep)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Sequence[Value]:
    # Computed before: the step is for tapes.
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


# ---------------------------------------------------------------- slices
class Slice(NamedTuple):
    """Where a slice begins on each axis (a number, or the index array that says so), its steps and
    lengths by axis, and its shape."""

    starts: list[Any]
    steps: list[int]
    lengths: list[int]
    shape: list[int]

    def layout(self, strides: Sequence[int]) -> StridedLayout:
        """Where its elements lie in an array with these strides, but for index arrays."""
        return StridedLayout(tuple(s * p for s, p in zip(self.steps, strides)), sum(
            s * p for s, p in zip(self.starts, strides) if isinstance(s, int)))


def slice_at(shape: Sequence[int], key: Sequence[Any], indices: Sequence[Value] = (),
             ) -> Slice | None:
    """What a key of slices, numbers, None and scalar indices means; None for other keys."""
    where = Slice([], [], [], [])
    entries = list(key)
    if Ellipsis not in entries:
        entries.append(Ellipsis)
    at = entries.index(Ellipsis)
    missing = len(shape) - sum(e is not None for e in entries) + 1
    for entry in [*entries[:at], *[getitem.WHOLE_AXIS] * missing, *entries[at + 1:]]:
        if entry is None:
            where.shape.append(1)
            continue
        n = shape[len(where.starts)]
        span = range(1)
        if hasattr(entry, "number"):
            where.starts.append(indices[entry.number])
        elif type(entry) is int and -n <= entry < n:
            where.starts.append(entry % n)
        elif type(entry) is tuple:
            span = range(*slice(*entry[1:]).indices(n))
            # Of nothing the start may lie outside, where no view may begin.
            where.starts.append(span.start if len(span) else 0)
            where.shape.append(len(span))
        else:
            return None
        where.steps.append(span.step)
        where.lengths.append(len(span))
    return where


@lowers(getitem.getitem_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    where = slice_at(x[0].shape, attrs["key"])
    return None if where is None else b.reshaped(
        b.sliced(x[0], where.starts, where.steps, tuple(where.lengths)), tuple(specs[0].shape))


@lowers(getitem.put_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), shape = x, tuple(attrs["shape"])
    where = slice_at(shape, attrs["key"])
    if where is None or not ready(value):
        return None
    part = b.reshaped(value, tuple(where.lengths)), where.layout(dense(shape))
    return placed(b, "put", [part], shape, value.dtype, 0)


def _cut(b: Builder, x: Value, axis: int, start: int, count: int) -> Value:
    """Some places of one axis."""
    starts = [start if i == axis else 0 for i in range(len(x.shape))]
    return b.sliced(x, starts, [1] * len(x.shape), _with(x.shape, axis, count))


def _with(shape: Sequence[int], axis: int, count: int) -> tuple[int, ...]:
    return (*shape[:axis], count, *shape[axis + 1:])


@lowers(packing.split_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value]:
    starts = itertools.accumulate(attrs["sizes"], initial=0)
    return [_cut(b, x[0], attrs["axis"], at, n) for at, n in zip(starts, attrs["sizes"])]


@lowers(packing.unstack_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value]:
    return [b.reshaped(_cut(b, x[0], attrs["axis"], at, 1), tuple(spec.shape))
            for at, spec in enumerate(specs)]


# ---------------------------------------------------------------- arrays put together
def placed(b: Builder, name: str, parts: Sequence[tuple[Value, StridedLayout]],
           shape: Sequence[int], dtype: str, fill: float | None = None) -> Value:
    """An array of `parts`, each at its layout, over a background of `fill` (None: all is
    covered)."""
    kind = C_TYPES[dtype]
    size = math.prod(shape)

    def emit(program: Any, node: LibraryCall) -> str:
        target = program.pointer(node.outputs[0])
        lines = [f"{kind}* const y = {target};"]
        if fill is not None:
            lines.append(f"for (long i = 0; i < {size}; i++) y[i] = ({kind})({_number(fill)});")
        for value, (_, at) in zip(node.inputs, parts):
            # The part was computed in its place here, and nothing is left to copy.
            if program.plan.is_home(node.outputs[0], value):
                continue
            _, strides, _ = program.plan.layout(value)
            lines += copied(f"y + {at.offset}", at.strides, program.pointer(value), strides,
                            value.shape, kind)
        return "{ " + " ".join(lines) + " }" if len(lines) > 1 else ""

    key = (tuple(at for _, at in parts), tuple(shape), repr(fill))
    node = LibraryCall(name, [v for v, _ in parts], key, (), emit)
    # Others than these leave a background, or write over what another part wrote.
    if name in ("concat", "stack"):
        node.parts = key[0]
    return b.library(node, [(tuple(shape), dtype)])[0]


def _number(fill: Any) -> str:
    text = repr(float(fill)) if isinstance(fill, float) else repr(int(fill))
    # Builtins need no header, which every program would have to read.
    return {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()",
            "nan": "__builtin_nanf(\"\")"}.get(text, text)


def copied(target: str, to: Sequence[int], source: str, start: Sequence[int],
           shape: Sequence[int], kind: str, letter: str = "") -> list[str]:
    """Loops that copy an array of `shape` between two layouts, or add or subtract it ("+", "-")."""
    joined: list[tuple[int, int, int]] = []
    for n, t, s in zip(shape, to, start):
        if n == 1:
            continue
        # Axes that both layouts run through like one become one, and one loop a copy of memory.
        if joined and joined[-1][1] == t * n and joined[-1][2] == s * n:
            joined[-1] = (joined[-1][0] * n, t, s)
        else:
            joined.append((n, t, s))
    head = [f"for (long i{i} = 0; i{i} < {n}; i{i}++)" for i, (n, _, _) in enumerate(joined)]
    there = " + ".join(["0", *(f"i{i} * {t}" for i, (_, t, _) in enumerate(joined))])
    here = " + ".join(["0", *(f"i{i} * {s}" for i, (_, _, s) in enumerate(joined))])
    old = f"({target})[{there}] {letter} " if letter else ""
    return [*head, f"({target})[{there}] = {old}(({kind}*){source})[{here}];"]


@lowers(packing.concat_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if any(v.dtype not in C_TYPES for v in x):
        return None
    shape, axis = tuple(specs[0].shape), attrs["axis"] % len(specs[0].shape)
    strides = dense(shape)
    starts = itertools.accumulate((v.shape[axis] for v in x), initial=0)
    parts = [(v, StridedLayout(strides, at * strides[axis])) for v, at in zip(x, starts) if v.size]
    return placed(b, "concat", parts, shape, x[0].dtype)


@lowers(packing.stack_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not ready(*x):
        return None
    shape = tuple(specs[0].shape)
    axis, strides = attrs["axis"] % len(shape), dense(shape)
    rest = (*strides[:axis], *strides[axis + 1:])
    parts = [(value, StridedLayout(rest, i * strides[axis])) for i, value in enumerate(x)]
    return placed(b, "stack", parts, shape, x[0].dtype)


@lowers(padding.pad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), fill = x, attrs["value"]
    if not ready(value) or not isinstance(fill, (int, float)):
        return None
    shape = tuple(specs[0].shape)
    strides = dense(shape)
    offset = sum(low * s for (low, _), s in zip(attrs["paddings"], strides))
    return placed(b, "pad", [(value, StridedLayout(strides, offset))], shape, value.dtype, fill)


# ---------------------------------------------------------------- diagonals
@lowers(diagonals.band_part_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    if not ready(value):
        return None
    rows, columns = value.shape[-2:]
    # How far an element is from the diagonal, computed where it is used: no mask in memory.
    step = elementwise(b, scalars.subtract, iota(b, columns, "int32"),
                       b.reshaped(iota(b, rows, "int32"), (rows, 1)))
    zero = b.splat(0, value.shape, value.dtype)
    # A negative number of diagonals is all of them.
    for beyond, limit, sign in ((scalars.less, attrs["lower"], -1),
                                (scalars.greater, attrs["upper"], 1)):
        if limit >= 0:
            outside = elementwise(b, beyond, step, b.splat(sign * limit, (), "int32"))
            value = elementwise(b, scalars.where, outside, zero, value)
    return value


def _diagonal(shape: Sequence[int], d: int) -> tuple[int, StridedLayout]:
    """The length of a diagonal of matrices, and where it lies."""
    rows, columns = shape[-2:]
    *batch, _, _ = dense(tuple(shape))
    length = max(0, min(rows + min(d, 0), columns - max(d, 0)))
    return length, StridedLayout((*batch, columns + 1), max(-d, 0) * columns + max(d, 0))


def _of_diagonal(op: Op) -> Any:
    """Decorator of rules of a single diagonal `d`; of several the array function knows more."""
    def declare(rule: Any) -> Any:
        @lowers(op)
        def checked(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Any:
            low, high = attrs["k"]
            return rule(b, x, attrs, specs, low) if ready(*x) and low == high else None

        return checked

    return declare


@_of_diagonal(diagonals.diag_part_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec], d: int) -> Value | None:
    length, lies = _diagonal(x[0].shape, d)
    return b.view(x[0], (*x[0].shape[:-2], length), lies, None) if length else None


@_of_diagonal(diagonals.diag_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec], d: int) -> Value:
    shape = tuple(specs[0].shape)
    return placed(b, "diag", [(x[0], _diagonal(shape, d)[1])], shape, x[0].dtype, attrs["padding"])


@_of_diagonal(diagonals.set_diag_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec], d: int) -> Value:
    value, diagonal = x
    parts = [(value, StridedLayout(dense(value.shape))), (diagonal, _diagonal(value.shape, d)[1])]
    return placed(b, "set diag", parts, value.shape, value.dtype)

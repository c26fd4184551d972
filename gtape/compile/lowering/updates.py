"""Arrays with some of their rows or slices written: in place where the old array is not needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.ir.builder import Attrs, Builder, invoked, lowers, ready
from gtape.compile.ir.nodes import LibraryCall, Value, dense
from gtape.compile.lowering.checks import within
from gtape.compile.lowering.indexing import flat_rows, indices_fit
from gtape.compile.lowering.moves import copied, slice_at
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.indexing import scattering, slice_assignment, variable_scatter
from gtape.ops.indexing.getitem import WHOLE_AXIS

_HEADER = ("cpu_indexing.h", "cpu_updates.h")
#: The struct of kernels/cpu_updates.h for each way of writing; products are left to NumPy, which
#: multiplies values of one row in pairs.
_HOW = {"update": "Replaced", "add": "Added", "sub": "Subtracted", "max": "Largest",
        "min": "Smallest"}
_LETTERS = {"assign": "", "assign_add": "+", "assign_sub": "-"}
_PIECES = {"assign": "Replaced", "assign_add": "LastAdded", "assign_sub": "LastSubtracted"}


def _chain_bytes(count: int) -> int:
    """The memory of `chained` in kernels/cpu_updates.h."""
    # Room for the rows in a hash table that is at most half full, and links between equal ones.
    slots = 8
    while slots < 2 * count:
        slots *= 2
    return 4 * slots + 5 * count  # an int for each slot; an int and a bool for each row


def _written(b: Builder, name: str, base: Value, inputs: Sequence[Value], key: object,
             text: Callable[..., object], scratch: int = 0) -> Value:
    """`base` after `text(target, *pointers of the inputs)`."""
    def emit(program: Any, node: LibraryCall) -> str:
        old, *pointers = [program.pointer(v) for v in node.inputs]
        (out,) = node.outputs
        target = program.pointer(out)
        # The planner gives the result the place of the old array where nothing else reads that one:
        # a row written into a large Variable then costs the row, and no copy of the table.
        copy = "" if old == target else (
            f"__builtin_memcpy({target}, {old}, sizeof({C_TYPES[out.dtype]}) * {out.size}L); ")
        return f"{{ {copy}{text(target, *pointers)} }}"

    kept, others = b.compact(base), [b.compact(v) for v in inputs]
    call = LibraryCall(name, (kept, *others), key, _HEADER, emit, scratch)
    if all(v is not kept for v in others):  # written over, it could not be read as well
        call.takes_place = kept.number
    return b.library(call, [(base.shape, base.dtype)])[0]


def _rows_written(b: Builder, struct: str, base: Value, rows: Value, values: Value, depth: int,
                  ) -> Value:
    """Rows over the first `depth` axes of `base` written with `values`, which is as many rows."""
    inner, count = math.prod(base.shape[depth:]), rows.size

    return _written(b, "write rows", base, (rows, values), (struct, depth), lambda y, where, x: (
        f"update_rows<{struct}>({x}, {where}, {y}, {inner}L, {count}L, scratch);"),
        _chain_bytes(count))


@lowers(variable_scatter.changed_rows_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    base, indices, values = x
    how = _HOW.get(attrs["how"])
    if how is None or not ready(base, values) or not indices_fit(indices):
        return None
    rows = base.shape[0]
    within(b, indices, rows, f"scatter_{attrs['how']}: indices must lie in [0, {rows})")
    return _rows_written(b, how, base, indices, values, 1)


def _declare(op: Op, struct: str | None, title: str) -> None:
    """The rule of an update by index tuples; its attribute says how where no struct does."""
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        base, indices, values = x
        how = struct or _HOW.get(attrs["how"])
        if how is None or not ready(base, values) or not indices_fit(indices):
            return None
        rows = flat_rows(b, indices, base.shape, title.format(**attrs))
        return _rows_written(b, how, base, rows, values, indices.shape[-1])


_declare(variable_scatter.changed_slices_, None, "scatter_nd_{how}")
_declare(scattering.tensor_scatter_update_, "Replaced", "tensor_scatter_nd_update")
_declare(scattering.tensor_scatter_max_, "Largest", "tensor_scatter_nd_max")
_declare(scattering.tensor_scatter_min_, "Smallest", "tensor_scatter_nd_min")


@lowers(scattering.cleared_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    base, indices = x
    if not ready(base) or not indices_fit(indices):
        return None
    rows = flat_rows(b, indices, base.shape, "tensor_scatter_nd_update")
    depth = indices.shape[-1]
    inner = math.prod(base.shape[depth:])
    return _written(b, "clear rows", base, (rows,), depth, lambda y, where: (
        f"clear_rows({where}, {y}, {inner}L, {rows.size}L);"))


@lowers(scattering.gather_last_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    table, indices = x
    if not ready(table) or not indices_fit(indices):
        return None
    rows = flat_rows(b, indices, table.shape, "tensor_scatter_nd_update")
    inner = math.prod(table.shape[indices.shape[-1]:])
    return b.call("take last", invoked("take_last", f"{inner}L", f"{rows.size}L", "scratch"),
                  [table, rows], specs[0], _HEADER, scratch=_chain_bytes(rows.size))


@lowers(scattering.put_last_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    indices, values = x
    if not ready(values) or not indices_fit(indices):
        return None
    shape = tuple(specs[0].shape)
    rows = flat_rows(b, indices, shape, "tensor_scatter_nd_update")
    # One number everywhere is no memory to write to.
    zeros = b.copied(b.splat(0, shape, values.dtype))
    return _rows_written(b, "Replaced", zeros, rows, values, indices.shape[-1])


# ---------------------------------------------------------------- variable[…].assign
@lowers(slice_assignment.changed_piece_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    base, update, *indices = x
    key = attrs["key"]
    if not ready(base) or update.dtype not in C_TYPES or not all(map(indices_fit, indices)):
        return None
    if all(not i.shape for i in indices):
        return _slice_written(b, base, update, indices, key, attrs["how"])
    if not update.size or len(indices) > 1 or not hasattr(key[0], "number") or any(
            e is not Ellipsis and e != WHOLE_AXIS for e in key[1:]):
        return None
    (where,) = indices
    rows = _wrapped(b, where, base.shape[0], attrs["how"])
    values = b.stretched(update, (*where.shape, *base.shape[1:]))
    return _rows_written(b, _PIECES[attrs["how"]], base, rows, values, 1)


def _wrapped(b: Builder, indices: Value, length: int, how: str) -> Value:
    """Indices as numbers of rows, the negative ones from the end; checked at run time."""
    return b.call("rows", invoked("wrapped_rows", f"{indices.size}L", f"{length}L"), [indices],
                  ((indices.size,), "int64"), _HEADER,
                  checks=f"variable[…].{how}: every index must lie in [-{length}, {length})")


def _slice_written(b: Builder, base: Value, update: Value, indices: Sequence[Value],
                   key: Sequence[object], how: str) -> Value | None:
    """A slice whose shape is known, at a place that may depend on scalar indices."""
    where = slice_at(base.shape, key, indices)
    if where is None:
        return None
    strides = dense(base.shape)
    layout = where.layout(strides)
    moved = [(_wrapped(b, s, n, how), d) for s, n, d in zip(where.starts, base.shape, strides)
             if not isinstance(s, int)]
    if 0 in where.lengths:
        return base
    wide = b.reshaped(b.stretched(update, tuple(where.shape)), tuple(where.lengths))
    kind = C_TYPES[base.dtype]

    def text(target: str, source: str, *rows: str) -> str:
        at = "".join(f" + *{p} * {d}L" for p, (_, d) in zip(rows, moved))
        loops = copied("y", layout.strides, source, dense(wide.shape), wide.shape, kind,
                       _LETTERS[how])
        return " ".join([f"{kind}* y = {target} + {layout.offset}L{at};", *loops])

    key_ = (layout, wide.shape, tuple(d for _, d in moved), how)
    return _written(b, "write slice", base, (wide, *(r for r, _ in moved)), key_, text)

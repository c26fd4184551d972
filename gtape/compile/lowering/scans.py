"""Running totals along an axis, and the places of extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, lowers
from gtape.compile.ir.nodes import LibraryCall, Value
from gtape.compile.lowering.indexing import compact
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.numerics.sums import SHORT
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.indexing import sorting
from gtape.ops.reductions import cumulative

Attrs = dict[str, Any]
_HEADER = ("cpu_scans.h",)
_REAL = ("float32", "float64")


def _sizes(shape: Sequence[int], axis: int) -> str:
    """The elements before, along and behind an axis."""
    return f"{math.prod(shape[:axis])}L, {shape[axis]}L, {math.prod(shape[axis + 1:])}L"


def _scan(op: Op, struct: str, dtypes: Sequence[str]) -> None:
    """The rule of a running total of one or two arrays."""
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        (last, shape, axis) = (x[-1], tuple(specs[0].shape), attrs["axis"])
        if any(v.dtype not in dtypes or not v.size or v.shape != last.shape for v in x):
            return None
        back = "true" if attrs["reverse"] else "false"
        # As the eager op does, so that both round alike: see `numerics.sums`.
        how = f"Wide{struct}" if struct == "Sums" and shape[axis] > SHORT else struct

        def emit(program: Any, node: LibraryCall) -> str:
            pointers = ", ".join(program.pointer(v) for v in node.inputs)
            return (f"scan({how}<{C_TYPES[last.dtype]}>{{{pointers}}}, "
                    f"{program.pointer(node.outputs[0])}, {_sizes(shape, axis)}, {back});")

        node = LibraryCall(f"running {struct.lower()}", [compact(b, v) for v in x],
                           (how, axis, back), _HEADER, emit)
        return b.library(node, [(shape, last.dtype)])[0]


_NUMBERS = tuple(d for d in C_TYPES if d != "bool")
_scan(cumulative.cumsum_, "Sums", _NUMBERS)
_scan(cumulative.cumprod_, "Products", _NUMBERS)
_scan(cumulative.cumulative_logsumexp_, "LogSums", _REAL)
_scan(cumulative.linear_scan_, "LinearSums", _REAL)


@lowers(sorting.arg_extreme_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), (spec,) = x, specs
    if value.dtype not in C_TYPES or not value.size or spec.dtype.name not in C_TYPES:
        return None
    axis, largest = attrs["axis"], "true" if attrs["largest"] else "false"

    def emit(program: Any, node: LibraryCall) -> str:
        return (f"extremes<{largest}>({program.pointer(node.inputs[0])}, "
                f"{program.pointer(node.outputs[0])}, {_sizes(value.shape, axis)});")

    node = LibraryCall("argmax" if attrs["largest"] else "argmin", (compact(b, value),), axis,
                       _HEADER, emit)
    return b.library(node, [(tuple(spec.shape), spec.dtype.name)])[0]

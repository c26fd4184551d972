"""Division of integers, their powers with a fixed exponent, and tests of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, lowers, number_of
from gtape.compile.ir.nodes import LibraryCall, Value
from gtape.compile.lowering.indexing import compact
from gtape.core.dtypes import INTEGERS
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.ops.checks import numerics
from gtape.ops.elementwise import scalars

Attrs = dict[str, Any]
_HEADER = ("cpu_integers.h",)


def _divided(op: Op, struct: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        (spec,) = specs
        shape, kind = tuple(spec.shape), spec.dtype.name
        if kind not in INTEGERS or 0 in shape or any(v.dtype != kind for v in x):
            return None
        both = [compact(b, v if v.size == 1 else b.stretched(v, shape)) for v in x]
        steps = ", ".join("0" if v.size == 1 else "1" for v in both)

        def emit(program: Any, node: LibraryCall) -> str:
            pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
            return f"divided<{struct}>({pointers}, {node.outputs[0].size}L, {steps})"

        name = op.name
        checks = (f"{name}: integer division by zero; use floating tensors, or tf.where to replace "
                  f"zeros")
        node = LibraryCall(name, both, steps, _HEADER, emit, checks=checks)
        return b.library(node, [(shape, kind)])[0]


_divided(scalars.floordiv.op, "Floored")
_divided(scalars.floormod.op, "FlooredRest")
_divided(scalars.truncatediv.op, "Truncated")
_divided(scalars.truncatemod.op, "TruncatedRest")


@lowers(scalars.power.op)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    base, exponent = x
    count = number_of(exponent)
    if base.dtype not in INTEGERS or not isinstance(count, int) or not 0 <= count < 64:
        return None
    shape = tuple(specs[0].shape)
    power, square = b.splat(1, shape, base.dtype), b.stretched(base, shape)
    # By squaring: 2 log2(n) products at most, where C has no power of integers.
    while count:
        if count % 2:
            power = elementwise(b, scalars.multiply, power, square)
        count //= 2
        if count:
            square = elementwise(b, scalars.multiply, square, square)
    return power


def integer_mean(b: Builder, x: Value, axes: Sequence[int], shape: tuple[int, ...]) -> Value:
    """The exact mean, rounded towards zero: the sums of the upper and of the lower 32 bits of each
    number fit into 64 bits where the whole sum may not."""
    count = math.prod(x.shape[a] for a in axes)
    wide = x.dtype if x.dtype in ("int64", "uint64") else "int64"
    parts = [x]
    if wide == x.dtype:
        parts = [elementwise(b, scalars.right_shift, x, b.splat(32, x.shape, wide)),
                 elementwise(b, scalars.bitwise_and, x, b.splat(2**32 - 1, x.shape, wide))]
    sums = [compact(b, b.reduced("sum", b.cast(p, wide), axes, True)) for p in parts]

    def emit(program: Any, node: LibraryCall) -> str:
        pointers = ", ".join(program.pointer(v) for v in (*node.inputs, *node.outputs))
        return f"means({pointers}, {node.outputs[0].size}L, {count}L);"

    node = LibraryCall("integer mean", sums, count, _HEADER, emit)
    return b.library(node, [(shape, x.dtype)])[0]


@lowers(numerics.check_numerics_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    if value.dtype not in ("float32", "float64"):
        return None
    if value.size:
        def emit(program: Any, node: LibraryCall) -> str:
            return f"all_finite({program.pointer(node.inputs[0])}, {value.size}L)"

        checks = (f"{attrs['message']} : Tensor had Inf or NaN values (shape {list(value.shape)}, "
                  f"{value.dtype})")
        b.library(LibraryCall("check numerics", (compact(b, value),), checks, _HEADER, emit,
                              checks=checks), ())
    return value

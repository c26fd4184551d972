"""Casts, and what C has no operator for: division of integers and their powers."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence

from gtape.compile.ir.builder import (
    Attrs,
    Builder,
    elementwise,
    invoked,
    lowers,
    number_of,
    ready,
)
from gtape.compile.ir.nodes import Value
from gtape.compile.schedule.plan import nbytes
from gtape.core.dtypes import FLOATS, INTEGERS
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.elementwise import scalars
from gtape.ops.shape import casting

#: The integers of what width NumPy's casts of floats go through on x86.
_BY_WAY_OF = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32"}
_X86 = platform.machine().lower() in ("x86_64", "amd64")


@lowers(casting.cast_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    wanted = attrs["dtype"].name
    if any(d.startswith("complex") or d == "string" for d in (wanted, x[0].dtype)):
        return None
    if x[0].dtype in FLOATS and wanted not in (*FLOATS, "bool"):
        return _truncated(b, x[0], wanted)
    return b.cast(x[0], wanted)


def _truncated(b: Builder, x: Value, dtype: str) -> Value | None:
    """Floats as integers. What does not fit C++ leaves open, and NumPy to the CPU: on x86 it is the
    lowest int32 or int64, whose low bits the smaller integers take. None elsewhere."""
    wide = _BY_WAY_OF.get(dtype, dtype)
    if wide not in ("int32", "int64") or not _X86:
        return None
    if x.dtype in ("float16", "bfloat16"):  # 2^31 is beyond float16
        x = b.cast(x, "float32")
    limit = 2.0 ** 31 if wide == "int32" else 2.0 ** 63  # one too large: 2^31 - 1 is no float32
    lowest = b.splat(-limit, x.shape, x.dtype)
    # Nan compares false, and becomes the lowest as on x86.
    fits = elementwise(b, scalars.logical_and, elementwise(b, scalars.greater_equal, x, lowest),
                       elementwise(b, scalars.less, x, b.splat(limit, x.shape, x.dtype)))
    return b.cast(b.cast(elementwise(b, scalars.where, fits, x, lowest), wide), dtype)


@lowers(casting.bitcast_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,), (spec,) = x, specs
    if not ready(value) or spec.dtype.name not in C_TYPES:
        return None
    size = nbytes(value)
    # C++ lets no pointer of another type read it; compilers know what this copy means.
    return b.call("bitcast", lambda old, new: f"__builtin_memcpy({new}, {old}, {size})", x, spec)


def _divided(op: Op, struct: str) -> None:
    @lowers(op)
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        (spec,) = specs
        shape, kind = tuple(spec.shape), spec.dtype.name
        if kind not in INTEGERS or 0 in shape or any(v.dtype != kind for v in x):
            return None
        # One number has a step of 0.
        both = [v if v.size == 1 else b.stretched(v, shape) for v in x]
        steps = [int(v.size != 1) for v in both]
        text = invoked(f"divided<{struct}>", f"{math.prod(shape)}L", *steps)
        return b.call(op.name, text, both, spec, ("cpu_integers.h",), checks=(
            f"{op.name}: integer division by zero; use floating tensors, or tf.where to replace "
            f"zeros"))


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

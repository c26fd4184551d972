"""Floats cut off to integers."""

from __future__ import annotations

import platform

from gtape.compile.ir.builder import Builder, elementwise
from gtape.compile.ir.nodes import Value
from gtape.ops.elementwise import scalars

#: The integers of what width NumPy's casts of floats go through on x86.
_BY_WAY_OF = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32"}
_X86 = platform.machine().lower() in ("x86_64", "amd64")


def truncated(b: Builder, x: Value, dtype: str) -> Value | None:
    """Floats as integers. What does not fit C++ leaves open, and NumPy to the CPU: on x86 it is the
    lowest int32 or int64, whose low bits the smaller integers take. None elsewhere."""
    wide = _BY_WAY_OF.get(dtype, dtype)
    if wide not in ("int32", "int64") or not _X86:
        return None
    if x.dtype in ("float16", "bfloat16"):
        x = b.cast(x, "float32")
    limit = 2.0 ** 31 if wide == "int32" else 2.0 ** 63
    lowest = b.splat(-limit, x.shape, x.dtype)
    fits = elementwise(b, scalars.logical_and, elementwise(b, scalars.greater_equal, x, lowest),
                       elementwise(b, scalars.less, x, b.splat(limit, x.shape, x.dtype)))
    return b.cast(b.cast(elementwise(b, scalars.where, fits, x, lowest), wide), dtype)

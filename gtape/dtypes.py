"""gtape.dtypes: the element types of tensors."""

from __future__ import annotations

from typing import Any

from gtape.core import dtypes as _dtypes
from gtape.core.dtypes import (
    DType,
    as_dtype,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gtape.core.dtypes import bool_ as bool

__all__ = [
    "DType",
    "as_dtype",
    "bool",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def __getattr__(name: str) -> Any:
    if name == "bfloat16":
        return _dtypes.bfloat16
    raise AttributeError(f"gtape.dtypes has no '{name}'; it has {', '.join(__all__)}, bfloat16")

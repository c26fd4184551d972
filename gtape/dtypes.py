"""gtape.dtypes: the element types of tensors."""

from __future__ import annotations

from types import SimpleNamespace as _SimpleNamespace
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
    "DType", "as_dtype", "bool", "complex64", "complex128", "double", "float16", "float32",
    "float64", "half", "int8", "int16", "int32", "int64", "string", "uint8", "uint16", "uint32",
    "uint64"]


_ELSEWHERE = {"cast": ("gtape.ops.shape.casting", "cast"),
              "saturate_cast": ("gtape.ops.shape.casting", "saturate_cast"),
              "complex": ("gtape.ops.elementwise.scalars", "make_complex")}


def __getattr__(name: str) -> Any:
    if name == "bfloat16":
        return _dtypes.bfloat16
    if name == "experimental":
        return _SimpleNamespace(float8_e4m3fn=_dtypes.as_dtype("float8_e4m3fn"),
                                float8_e5m2=_dtypes.as_dtype("float8_e5m2"))
    if name in _ELSEWHERE:
        import importlib

        module, attribute = _ELSEWHERE[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"gtape.dtypes has no '{name}'; it has {', '.join(__all__)}, bfloat16, "
                         f"experimental, {', '.join(_ELSEWHERE)}")

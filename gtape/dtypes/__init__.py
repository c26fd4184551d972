"""gtape.dtypes: the element types of tensors."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.core.dtypes": """
        DType as_dtype bfloat16 bool=bool_ complex64 complex128 double float16 float32 float64 half
        int8 int16 int32 int64 string uint8 uint16 uint32 uint64""",
    "gtape.dtypes": "experimental",
    "gtape.ops.elementwise.scalars": "complex=make_complex",
    "gtape.ops.shape.casting": "cast saturate_cast",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)

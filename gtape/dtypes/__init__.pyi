"""Names of gtape.dtypes; written by `python -m gtape._stub`."""

from gtape.core.dtypes import DType as DType
from gtape.core.dtypes import as_dtype as as_dtype
from gtape.core.dtypes import bfloat16 as bfloat16
from gtape.core.dtypes import bool_ as _bool
from gtape.core.dtypes import complex64 as complex64
from gtape.core.dtypes import complex128 as complex128
from gtape.core.dtypes import double as double
from gtape.core.dtypes import float16 as float16
from gtape.core.dtypes import float32 as float32
from gtape.core.dtypes import float64 as float64
from gtape.core.dtypes import half as half
from gtape.core.dtypes import int8 as int8
from gtape.core.dtypes import int16 as int16
from gtape.core.dtypes import int32 as int32
from gtape.core.dtypes import int64 as int64
from gtape.core.dtypes import string as string
from gtape.core.dtypes import uint8 as uint8
from gtape.core.dtypes import uint16 as uint16
from gtape.core.dtypes import uint32 as uint32
from gtape.core.dtypes import uint64 as uint64
from gtape.dtypes import experimental as experimental
from gtape.ops.elementwise.scalars import make_complex as _complex
from gtape.ops.shape.casting import cast as cast
from gtape.ops.shape.casting import saturate_cast as saturate_cast

bool = _bool
complex = _complex

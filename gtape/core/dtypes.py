"""DType: what a tensor holds. Equal to its NumPy type and to its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown


class DType:
    """The element type of a tensor: `tf.float32`, `tf.int64`, `tf.string` …"""

    __slots__ = ("as_numpy_dtype", "is_bool", "is_complex", "is_floating", "is_integer", "name",
                 "np_dtype")

    def __init__(self, name: str, numpy_type: Any, kind: str) -> None:
        self.name = name
        self.as_numpy_dtype = numpy_type
        self.np_dtype = np.dtype(numpy_type) if numpy_type is not None else None
        self.is_floating = kind == "float"
        self.is_complex = kind == "complex"
        self.is_integer = kind in ("int", "uint")
        self.is_bool = kind == "bool"

    @property
    def is_differentiable(self) -> bool:
        """Whether values of this type can carry a gradient: not floats of one byte."""
        return (self.is_floating and self.name not in FLOAT8) or self.is_complex

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers: neither bools nor strings."""
        return not self.is_bool and self.as_numpy_dtype is not object

    @property
    def is_unsigned(self) -> bool:
        return self.is_integer and self.name.startswith("uint")

    @property
    def size(self) -> int:
        """Bytes per element."""
        if self.np_dtype is None:
            return 1 if self.name in FLOAT8 else 2
        return self.np_dtype.itemsize

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def limits(self) -> tuple[Any, Any]:
        return (self.min, self.max)

    @property
    def min(self) -> Any:
        """The smallest finite value. Raises TypeError: it is not of real numbers."""
        return self._info().min

    @property
    def max(self) -> Any:
        """The largest finite value. Raises TypeError: it is not of real numbers."""
        return self._info().max

    def _info(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.np_dtype)
        if not self.is_floating:
            raise TypeError(f"only dtypes of real numbers have a range; got {self!r}")
        if self.name not in _ML_DTYPES:
            return np.finfo(self.np_dtype)
        import ml_dtypes

        return ml_dtypes.finfo(require_usable(self).np_dtype)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, DType):
            return False
        if other is None:
            return False
        if type(other) is str:  # names that are none are asked for often: no error is made of them
            return other == self.name or _BY_NAME.get(other) is self
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


#: The names of the floats that everything is defined on.
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: Floats of one byte: to be stored and cast; little else is defined on them.
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
#: Those of the package ml-dtypes, which is imported when one is first named.
_ML_DTYPES = ("bfloat16", *FLOAT8)


def _ml_type(name: str) -> Any:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return getattr(ml_dtypes, name)


bool_ = DType("bool", np.bool_, "bool")
int8 = DType("int8", np.int8, "int")
int16 = DType("int16", np.int16, "int")
int32 = DType("int32", np.int32, "int")
int64 = DType("int64", np.int64, "int")
uint8 = DType("uint8", np.uint8, "uint")
uint16 = DType("uint16", np.uint16, "uint")
uint32 = DType("uint32", np.uint32, "uint")
uint64 = DType("uint64", np.uint64, "uint")
float16 = half = DType("float16", np.float16, "float")
float32 = DType("float32", np.float32, "float")
float64 = double = DType("float64", np.float64, "float")
complex64 = DType("complex64", np.complex64, "complex")
complex128 = DType("complex128", np.complex128, "complex")
string = DType("string", np.object_, "string")

ALL: tuple[DType, ...] = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
                          float16, float32, float64, complex64, complex128, string)
_BY_NAME: dict[str, DType] = {d.name: d for d in ALL} | {
    "half": half, "float": float32, "double": double}
_FLOAT32 = np.dtype(np.float32)
_BY_NUMPY: dict[np.dtype, DType] = {d.np_dtype: d for d in ALL if d.np_dtype is not None}


def __getattr__(name: str) -> DType:
    if name not in _ML_DTYPES:
        raise AttributeError(name)
    dtype = DType(name, _ml_type(name), "float")
    # Into the module, which is not asked again: there is one object for each dtype, compared by
    # `is`.
    globals()[name] = _BY_NAME[name] = dtype
    if dtype.np_dtype is not None:
        _BY_NUMPY[dtype.np_dtype] = dtype
    return dtype


def of_numpy(dtype: np.dtype) -> DType:
    """The DType of a NumPy dtype.

    Raises:
        TypeError: gtape has no such type (datetimes, records, longdouble, objects).
    """
    known = _BY_NUMPY.get(dtype)
    if known is not None:
        return known
    if dtype.kind in "SU":
        return string
    native = dtype.newbyteorder("=")
    if native in _BY_NUMPY:
        return _BY_NUMPY[native]
    if dtype.name in _ML_DTYPES:
        return __getattr__(dtype.name)
    raise TypeError(
        f"a tensor's dtype must be one of {', '.join(d.name for d in ALL)}; got NumPy dtype "
        f"{dtype}. Convert it first: array.astype(np.float32)")


def as_dtype(value: object) -> DType:
    """The DType meant by a DType, a name, a NumPy type or dtype, or Python's `float` or `bool`.

    Raises:
        TypeError: `value` names no dtype.
    """
    if type(value) is DType:
        return value
    if isinstance(value, str):
        known = _BY_NAME.get(value)
        if known is None and value in _ML_DTYPES:
            known = __getattr__(value)
        if known is not None:
            return known
    elif value is float:
        return float32
    elif value is bool:
        return bool_
    elif isinstance(value, np.dtype):
        return of_numpy(value)
    elif isinstance(value, type) and issubclass(value, np.generic):
        return of_numpy(np.dtype(value))
    elif isinstance(value, type) and value.__name__ in _ML_DTYPES:
        return __getattr__(value.__name__)
    raise TypeError(
        f"cannot read {shown(value)} as a dtype; write gtape.float32, 'float32' or numpy.float32")


def running_type(dtype: np.dtype) -> np.dtype:
    """The NumPy dtype in which sums and products of `dtype` are accumulated.

    Floats of two bytes take float32: ones added up in float16 stop at 2048, in bfloat16 at 256.
    """
    return _FLOAT32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype


def require_usable(dtype: DType) -> DType:
    """`dtype`, or an error when its NumPy type is not installed."""
    if dtype.np_dtype is None:
        raise InvalidArgumentError(
            f"{dtype.name} needs the package ml-dtypes: pip install ml-dtypes")
    return dtype

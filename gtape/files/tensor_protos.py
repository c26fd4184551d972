"""Tensors as TensorProto messages: serialize_tensor and parse_tensor."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.files import wire
from gtape.files.images import single
from gtape.trace.host_steps import step

#: TensorFlow's numbers of the dtypes.
CODES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
         "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18,
         "float16": 19, "uint32": 22, "uint64": 23}
NAMES = {code: name for name, code in CODES.items()}
_WHAT = "bytes as a TensorProto"
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
#: Where the values of each dtype stand one by one: the field's number and how a number is stored.
_FIELDS = {"float32": (5, "<f4"), "float64": (6, "<f8"), "int32": (7, ""), "uint8": (7, ""),
           "int16": (7, ""), "int8": (7, ""), "uint16": (7, ""), "complex64": (9, "<f4"),
           "int64": (10, ""), "bool": (11, ""), "complex128": (12, "<f8"), "float16": (13, ""),
           "bfloat16": (13, ""), "uint32": (16, ""), "uint64": (17, "")}
#: A message that gives one value for many elements may make so many of it.
_REPEATED = 1 << 24


def shape_proto(shape: tuple[int, ...]) -> bytes:
    """A TensorShapeProto of a known shape."""
    return b"".join(wire.delimited(2, b"\x08" + wire.varint(n) if n else b"") for n in shape)


@lru_cache(maxsize=256)
def _head(name: str, shape: tuple[int, ...]) -> bytes:
    """What a TensorProto says of its dtype and shape."""
    return b"\x08" + wire.varint(CODES[name]) + wire.delimited(_SHAPE, shape_proto(shape))


def encoded(array: np.ndarray, dtype: DType) -> bytes:
    """The TensorProto of an array."""
    head = _head(dtype.name, array.shape)
    if dtype is dtypes.string:
        return head + b"".join(wire.delimited(_STRINGS, s) for s in array.reshape(-1).tolist())
    content = np.ascontiguousarray(array).tobytes()
    return head + wire.delimited(_CONTENT, content) if content else head


def decoded(message: bytes | memoryview, dtype: DType | None = None) -> tuple[np.ndarray, DType]:
    """The array that a TensorProto holds, and its dtype. Raises InvalidArgumentError: the bytes are
    damaged, cut short or something else, hold another dtype than `dtype`, or fewer or more values
    than their shape has elements."""
    code, content, strings, rows = 0, None, [], []
    shape: tuple[int, ...] = ()
    for number, kind, value in wire.fields(message, _WHAT):
        if number == _DTYPE and kind == wire.VARINT:
            code = value
        elif number == _SHAPE and kind == wire.DELIMITED:
            shape = _shape(value)
        elif number == _CONTENT and kind == wire.DELIMITED:
            content = value
        elif number == _STRINGS and kind == wire.DELIMITED:
            strings.append(bytes(value))
        elif number in range(5, 19):
            rows.append((number, kind, value))
    name = NAMES.get(code)
    if name is None:
        raise InvalidArgumentError(f"could not parse {_WHAT}: gtape has no dtype of the number "
                                   f"{code}; it has those of {', '.join(CODES)}")
    stored = as_dtype(name)
    if dtype is not None and stored is not dtype:
        raise InvalidArgumentError(f"the tensor in these bytes is of {stored!r}, not of {dtype!r}: "
                                   f"give the dtype that it has, and tf.cast it")
    if name == "string":
        return _shaped(np.fromiter(strings, object, len(strings)), shape), stored
    dtypes.require_usable(stored)
    if content is not None and len(content):
        if len(content) % stored.size:
            raise InvalidArgumentError(f"could not parse {_WHAT}: {len(content)} bytes hold no "
                                       f"whole number of values of {stored!r}")
        values = np.frombuffer(content, stored.np_dtype)
    else:
        values = _single(rows, name, stored)
    return _shaped(values, shape), stored


def _shape(message: memoryview) -> tuple[int, ...]:
    """The lengths in a TensorShapeProto."""
    lengths = []
    for number, kind, value in wire.fields(message, _WHAT):
        if number == 3 and value:
            raise InvalidArgumentError(f"could not parse {_WHAT}: a shape of unknown rank")
        if number != 2 or kind != wire.DELIMITED:
            continue
        sizes = [wire.signed(v) for n, k, v in wire.fields(value, _WHAT)
                 if n == 1 and k == wire.VARINT]
        lengths.append(sizes[-1] if sizes else 0)
    if len(lengths) > 64 or any(n < 0 for n in lengths):
        raise InvalidArgumentError(f"could not parse {_WHAT}: a shape of {len(lengths)} lengths, "
                                   f"the least {min(lengths)}; they must be 64 at most, and none "
                                   f"negative")
    return tuple(lengths)


def _single(rows: list[tuple[int, int, Any]], name: str, dtype: DType) -> np.ndarray:
    """The values that stand one by one."""
    wanted, stored = _FIELDS[name]
    parts = []
    for number, kind, value in rows:
        if number != wanted:
            continue
        if kind == wire.VARINT:
            parts.append(np.array([wire.signed(value)], np.int64))
        elif not stored:
            parts.append(wire.read_varints(_bytes(value, kind), _WHAT))
        elif len(value) % np.dtype(stored).itemsize:
            raise InvalidArgumentError(f"could not parse {_WHAT}: a field that is cut short")
        else:
            parts.append(np.frombuffer(value, stored))
    joined = np.concatenate(parts) if parts else np.empty(0, stored or np.int64)
    if name in ("float16", "bfloat16"):
        return joined.astype(np.uint16).view(dtype.np_dtype)
    if name.startswith("complex"):  # real and imaginary parts in turn
        return joined[:len(joined) // 2 * 2].view(dtype.np_dtype)
    return joined.astype(dtype.np_dtype)


def _bytes(value: memoryview, kind: int) -> memoryview:
    if kind != wire.DELIMITED:
        raise InvalidArgumentError(f"could not parse {_WHAT}: a field of the wire type {kind}")
    return value


def _shaped(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The values in their shape; the last stands for all that are missing, if there are any."""
    count = math.prod(shape)
    if len(values) == count:
        return values.reshape(shape)
    if 0 < len(values) < count <= _REPEATED:
        return np.concatenate([values, np.repeat(values[-1:], count - len(values))]).reshape(shape)
    raise InvalidArgumentError(f"could not parse {_WHAT}: {len(values)} values for the shape "
                               f"{shape}, which has {count} elements")


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as the bytes of a TensorProto, a scalar of strings; `parse_tensor` reads it."""
    value = convert(tensor)
    return step("serialize_tensor", lambda array: [encoded(array, value.dtype)], [value],
                [Spec((), dtypes.string)])[0]


def parse_tensor(serialized: TensorLike, out_type: object, name: str | None = None) -> Tensor:
    """The tensor that `serialize_tensor` wrote.

    Raises:
        InvalidArgumentError: the bytes are damaged, cut short or something else, or hold another
            dtype.
    """
    dtype = as_dtype(out_type)
    return step("parse_tensor", lambda message: [decoded(message.item(), dtype)[0]],
                [single("parse_tensor", serialized)], [dtype])[0]

"""Bytes as tensors and tensors as bytes: decode_raw, base 64, unpacking, and the TensorProto
messages of serialize_tensor and parse_tensor."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import DataLossError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.files import wire
from gtape.files.images import single
from gtape.files.streams import WINDOWS, compression
from gtape.ops.arguments import as_int, as_strings
from gtape.ops.text.steps import each
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


# The tensors of a file have few shapes; bounded, since a program may write any number.
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
        # The fields of single values, one for each of several dtypes; which of them counts is known
        # only when the dtype is, and fields may come in any order.
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
    # Strings have a field of their own, and never stand packed.
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
    lengths = []
    for number, kind, value in wire.fields(message, _WHAT):
        # unknown_rank.
        if number == 3 and value:
            raise InvalidArgumentError(f"could not parse {_WHAT}: a shape of unknown rank")
        if number != 2 or kind != wire.DELIMITED:
            continue
        sizes = [wire.signed(v) for n, k, v in wire.fields(value, _WHAT)
                 if n == 1 and k == wire.VARINT]
        lengths.append(sizes[-1] if sizes else 0)
    # NumPy's arrays have at most 64 axes.
    if len(lengths) > 64 or any(n < 0 for n in lengths):
        raise InvalidArgumentError(f"could not parse {_WHAT}: a shape of {len(lengths)} lengths, "
                                   f"the least {min(lengths)}; they must be 64 at most, and none "
                                   f"negative")
    return tuple(lengths)


def _single(rows: list[tuple[int, int, Any]], name: str, dtype: DType) -> np.ndarray:
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
        # They stand as integers: the bits of each.
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
    # TensorFlow's shorthand for tensors of one value.
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
    """The tensor that `serialize_tensor` wrote. Raises InvalidArgumentError: the bytes are damaged,
    cut short or something else, or hold another dtype."""
    dtype = as_dtype(out_type)
    return step("parse_tensor", lambda message: [decoded(message.item(), dtype)[0]],
                [single("parse_tensor", serialized)], [dtype])[0]


def decode_raw(input_bytes: TensorLike, out_type: object, little_endian: bool = True,
               fixed_length: int | None = None, name: str | None = None) -> Tensor:
    """The bytes of strings [...] as numbers [..., n] of a dtype. Raises InvalidArgumentError:
    strings of several lengths, or of one that is no multiple of the dtype's size.

    Args:
        little_endian: the least significant byte comes first.
        fixed_length: bytes of each string; longer ones are cut, shorter ones get zeros at the end.
    """
    dtype, given = as_dtype(out_type), as_strings(input_bytes, "decode_raw")
    if dtype is dtypes.string:
        raise InvalidArgumentError("decode_raw gives numbers or bools; got out_type=tf.string")
    dtypes.require_usable(dtype)
    size = None if fixed_length is None else as_int(fixed_length, "decode_raw: fixed_length")
    if size is not None and (size <= 0 or size % dtype.size):
        raise InvalidArgumentError(f"fixed_length ({size}) must be a multiple of the size "
                                   f"of out_type ({dtype.size})")

    def run(array: np.ndarray) -> list[object]:
        flat = array.reshape(-1).tolist()
        rows = _of_one_length(flat, dtype) if size is None else _cut(flat, size)
        return [_numbers(rows, dtype, little_endian).reshape(
            *array.shape, rows.shape[1] // dtype.size)]

    result = dtype if size is None else Spec((*given.spec.shape, size // dtype.size), dtype)
    return step("decode_raw", run, [given], [result], rows=run)[0]


def _cut(flat: list[bytes], size: int) -> np.ndarray:
    """The first bytes of strings, with zeros behind those that are shorter: uint8 [n, size]."""
    spec = Spec((len(flat), size), dtypes.uint8)
    with room_for("decode_raw", spec):
        rows = np.zeros(spec.shape, np.uint8)
    for row, value in zip(rows, flat):
        row[:len(value)] = np.frombuffer(value[:size], np.uint8)
    return rows


def _of_one_length(flat: list[bytes], dtype: dtypes.DType) -> np.ndarray:
    """The bytes of strings: uint8 [n, size]. Raises InvalidArgumentError: they are of several
    lengths, or of one that is no multiple of the dtype's size."""
    sizes = {len(v) for v in flat}
    if len(sizes) > 1:
        odd = next(i for i, v in enumerate(flat) if len(v) != len(flat[0]))
        raise InvalidArgumentError(f"decode_raw requires input strings to all be the same size, "
                                   f"but element {odd} has size {len(flat[odd])} != "
                                   f"{len(flat[0])}; fixed_length= cuts and fills them")
    size = max(sizes, default=0)
    if size % dtype.size:
        raise InvalidArgumentError(f"Input to decode_raw has length {size} that is not a "
                                   f"multiple of {dtype.size}, the size of {dtype.name}")
    return np.frombuffer(b"".join(flat), np.uint8).reshape(len(flat), size)


def _numbers(rows: np.ndarray, dtype: dtypes.DType, little_endian: bool) -> np.ndarray:
    if dtype.is_bool:
        return rows != 0
    # The two parts of a complex number are turned each by itself.
    words = rows.view(f"u{dtype.size // 2 if dtype.is_complex else dtype.size}")
    return (words if little_endian else words.byteswap()).view(dtype.np_dtype)


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the base-64 alphabet that is safe in addresses, with "-" and "_"; `pad` ends them
    with "=" to a length that 4 divides."""
    def one(value: bytes) -> bytes:
        encoded = base64.urlsafe_b64encode(value)
        return encoded if pad else encoded.rstrip(b"=")

    return each("encode_base64", one, as_strings(input, "encode_base64"), dtypes.string)


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """What `encode_base64` was given, with or without "=" at the end. Raises InvalidArgumentError:
    other characters, or a length that no base-64 string has."""
    def one(value: bytes) -> bytes:
        bare = value
        if len(value) % 4 == 0:
            bare = value.removesuffix(b"=").removesuffix(b"=")
        if len(bare) % 4 == 1:
            raise InvalidArgumentError(f"Base64 string length cannot be 1 modulo 4; got "
                                       f"{shown(value)}")
        # Python's decoder passes over what is none of its letters.
        if bare.translate(None, _ALPHABET):
            raise InvalidArgumentError(f"Invalid character found in base64; it has letters, "
                                       f"digits, '-' and '_'; got {shown(value)}")
        try:
            return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
        except binascii.Error as error:
            raise InvalidArgumentError(f"no base64: {error}; got {shown(value)}") from None

    return each("decode_base64", one, as_strings(input, "decode_base64"), dtypes.string)


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#: Bytes that one string may unpack to: a few bytes can claim to be terabytes.
_MOST = 1 << 31


def decode_compressed(bytes: TensorLike, compression_type: str = "", name: str | None = None,
                      ) -> Tensor:
    """Strings unpacked by "GZIP", "ZLIB", or "" for none. Raises InvalidArgumentError: another
    compression; DataLossError: a string that is not compressed so, is cut short, or has more than
    2 GiB."""
    kind = compression(compression_type)

    def one(value: Any) -> Any:
        if not kind:
            return value
        unpack = zlib.decompressobj(WINDOWS[kind])
        try:
            content = unpack.decompress(value, _MOST)
        except zlib.error as error:
            raise DataLossError(f"decode_compressed: {shown(value)} is damaged or not compressed "
                                f"as {kind}: {error}") from None
        if not unpack.eof:
            raise DataLossError(f"decode_compressed: {shown(value)} is cut short, or unpacks to "
                                f"more than {_MOST} bytes")
        return content

    return each("decode_compressed", one, as_strings(bytes, "decode_compressed"), dtypes.string)

"""Bytes as numbers and as other bytes: decode_raw, base 64, unpacking."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.dtypes import as_dtype
from gtape.core.errors import DataLossError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.files.streams import WINDOWS, compression
from gtape.ops.arguments import as_int, as_strings
from gtape.ops.text.steps import each
from gtape.trace.host_steps import step


def decode_raw(input_bytes: TensorLike, out_type: object, little_endian: bool = True,
               fixed_length: int | None = None, name: str | None = None) -> Tensor:
    """The bytes of strings [...] as numbers [..., n] of a dtype.

    Args:
        little_endian: the least significant byte comes first.
        fixed_length: bytes of each string; longer ones are cut, shorter ones get zeros at the end.

    Raises:
        InvalidArgumentError: strings of several lengths, or of one that is no multiple of the
            dtype's size.
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
    """The numbers in rows of bytes."""
    if dtype.is_bool:
        return rows != 0
    words = rows.view(f"u{dtype.size // 2 if dtype.is_complex else dtype.size}")
    return (words if little_endian else words.byteswap()).view(dtype.np_dtype)


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in the base-64 alphabet that is safe in addresses, with "-" and "_".

    Args:
        pad: end them with "=" to a length that 4 divides.
    """
    def one(value: bytes) -> bytes:
        encoded = base64.urlsafe_b64encode(value)
        return encoded if pad else encoded.rstrip(b"=")

    return each("encode_base64", one, as_strings(input, "encode_base64"), dtypes.string)


def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """What `encode_base64` was given, with or without "=" at the end.

    Raises:
        InvalidArgumentError: other characters, or a length that no base-64 string has.
    """
    def one(value: bytes) -> bytes:
        bare = value
        if len(value) % 4 == 0:
            bare = value.removesuffix(b"=").removesuffix(b"=")
        if len(bare) % 4 == 1:
            raise InvalidArgumentError(f"Base64 string length cannot be 1 modulo 4; got "
                                       f"{shown(value)}")
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
    """Unpacked strings.

    Args:
        compression_type: "GZIP", "ZLIB", or "" for none.

    Raises:
        InvalidArgumentError: another compression.
        DataLossError: a string that is not compressed so, is cut short, or has more than 2 GiB.
    """
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

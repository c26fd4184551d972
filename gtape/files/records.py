"""TFRecord files: each record with its length and the checksums of both.

A record is its length in eight bytes, the masked CRC-32C of these, the bytes, and their masked
CRC-32C; numbers are little endian. Checksums of many records are found at once: the checksum of a
string is the exclusive or of what each byte gives by itself and its distance from the end, so that
NumPy looks all of them up in a table of 1,024 distances times 256 bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Self

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.files.paths import errors, local
from gtape.files.streams import WINDOWS, Stream, compression
from gtape.ops.arguments import as_int

# Castagnoli's, its bits reversed: the lowest bit is the highest power, as in every reader of files.
_POLYNOMIAL = 0x82F63B78
_BLOCK = 1024
#: Below this many bytes a loop over bytes is faster than NumPy's calls.
_SHORT = 48
#: Bytes that are looked up at once: what comes of them stays in the processor's caches.
_TOGETHER = 1 << 15
_ONES = 0xFFFFFFFF
# TensorFlow's number: files of both must be readable by both.
_MASK_DELTA = 0xA282EAD8


@cache
def _first() -> list[int]:
    """What a byte at the end gives, by its value."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


@cache
def _table() -> np.ndarray:
    """What a byte gives, by its distance from the end times 256 plus its value."""
    rows = [np.array(_first(), np.uint32)]
    while len(rows) < 4:
        rows.append(rows[0][rows[-1] & 255] ^ rows[-1] >> 8)
    table = np.array(rows)
    while len(table) < _BLOCK:
        farther = table[-1][table & 255]
        for byte in range(1, 4):
            farther = farther ^ table[-1 - byte][table >> 8 * byte & 255]
        table = np.concatenate([table, farther])
    return table.reshape(-1)


@cache
def _rows() -> np.ndarray:
    """Where the row of each byte of a whole block begins in the table."""
    return np.arange(_BLOCK - 1, -1, -1, dtype=np.intp) * 256


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of the bytes."""
    state = _ONES
    if len(data) < _SHORT:
        return _bytewise(data, state) ^ _ONES
    raw, table, rows = np.frombuffer(data, np.uint8), _table(), _rows()
    odd = len(raw) % _BLOCK
    if odd:
        state = _after(raw[:odd], state, table, rows)
    for start in range(odd, len(raw), _BLOCK * 64):
        blocks = raw[start:start + _BLOCK * 64].reshape(-1, _BLOCK)
        checks = np.bitwise_xor.reduce(table.take(blocks + rows), axis=1).tolist()
        for alone in checks:
            # The state before a block acts as if it were added to the block's first four bytes.
            state = alone ^ _moved(state, table)
    return state ^ _ONES


def _bytewise(data: Iterable[int], state: int) -> int:
    """The state after bytes, one after another."""
    first = _first()
    for byte in data:
        state = first[(state ^ byte) & 255] ^ state >> 8
    return state


def _after(raw: np.ndarray, state: int, table: np.ndarray, rows: np.ndarray) -> int:
    """The state after bytes of which there are fewer than a block."""
    state, rest = _bytewise(raw[:4].tolist(), state), raw[4:]
    # The state below goes into four bytes, which must be there.
    if len(rest) < 4:
        return _bytewise(rest.tolist(), state)
    joined = rest.copy()
    joined[:4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    return int(np.bitwise_xor.reduce(table.take(joined + rows[_BLOCK - len(joined):])))


def _moved(state: int, table: np.ndarray) -> int:
    """The state after a block of zeros."""
    top = (_BLOCK - 1) * 256
    return int(table[top + (state & 255)] ^ table[top - 256 + (state >> 8 & 255)]
               ^ table[top - 512 + (state >> 16 & 255)] ^ table[top - 768 + (state >> 24)])


def masked_crc32c(data: bytes | memoryview) -> int:
    """The checksum of the bytes as it stands in a file."""
    # Turned and moved, as TensorFlow does: a checksum of bytes that hold their own says little.
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ONES


def of_parts(raw: np.ndarray, starts: np.ndarray, lengths: TensorLike) -> np.ndarray:
    """The masked checksums of many parts of an array of bytes, as uint32."""
    begin, size = np.asarray(starts, np.intp), np.asarray(lengths, np.intp)
    checks = np.empty(len(begin), np.uint32)
    width = 4
    # By powers of two, so that rows are padded to less than twice their length.
    while width <= _BLOCK:
        alike = np.flatnonzero((size <= width) & (size > width // 2) & (size >= 4))
        for at in range(0, len(alike), _TOGETHER // width):
            some = alike[at:at + _TOGETHER // width]
            checks[some] = _of_alike(raw, begin[some], size[some], width)
        width *= 2
    for i in np.flatnonzero((size < 4) | (size > _BLOCK)).tolist():
        checks[i] = masked_crc32c(raw[begin[i]:begin[i] + size[i]].tobytes())
    return checks


def _of_alike(raw: np.ndarray, begin: np.ndarray, size: np.ndarray, width: int) -> np.ndarray:
    """The masked checksums of parts of at most `width` bytes, each a row that ends where its part
    does: zeros before a part add nothing. The state at the beginning acts as if it were added to
    the first four bytes."""
    places = (begin + size - width)[:, None] + np.arange(width)
    rows = raw.take(places, mode="clip")
    if (size < width).any():
        rows *= places >= begin[:, None]
    rows[np.arange(len(rows))[:, None], (width - size)[:, None] + np.arange(4)] ^= 255
    crc = np.bitwise_xor.reduce(_table().take(rows + _rows()[-width:]), axis=1) ^ np.uint32(_ONES)
    return (crc >> 15 | crc << 17) + np.uint32(_MASK_DELTA)


_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_CHECK = struct.Struct("<I")
#: Records are held until they have so many bytes, or are so many: checksums found at once take less
#: time.
_HELD_BYTES, _HELD = 1 << 18, 1024


class TFRecordOptions:
    """How records are written. Raises InvalidArgumentError: another compression, or another level.

    Args:
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        compression_level: zlib's, from 0 to 9.
        flush_mode, input_buffer_size, output_buffer_size, window_bits, compression_method,
        mem_level, compression_strategy: taken for TensorFlow's sake; gtape writes with zlib's own.
    """

    def __init__(self, compression_type: str | None = None, flush_mode: object = None,
                 input_buffer_size: object = None, output_buffer_size: object = None,
                 window_bits: object = None, compression_level: int | None = None,
                 compression_method: object = None, mem_level: object = None,
                 compression_strategy: object = None) -> None:
        self.compression_type = compression(compression_type)
        level = -1 if compression_level is None else as_int(compression_level, "compression_level")
        if not -1 <= level <= 9:
            raise InvalidArgumentError(f"compression_level must be from -1 to 9; got {level}")
        self.compression_level = level


class TFRecordWriter:
    """Writes a TFRecord file; what was there is replaced. `options` are `TFRecordOptions`, or the
    name of the compression. Raises NotFoundError, PermissionDeniedError: the file cannot be made
    there."""

    def __init__(self, path: object, options: str | TFRecordOptions | None = None) -> None:
        given = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._path = local(path)
        with errors(self._path):
            self._file = open(self._path, "wb")  # noqa: SIM115
        kind = given.compression_type
        self._packer = zlib.compressobj(given.compression_level, zlib.DEFLATED,
                                        WINDOWS[kind]) if kind else None
        self._held: list[bytes] = []
        self._room = _HELD_BYTES

    def write(self, record: TensorLike) -> None:
        """Add a record, which is bytes or a str. Raises TypeError: it is neither;
        FailedPreconditionError: the writer is closed."""
        content = record.encode() if isinstance(record, str) else record
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise TypeError(f"a record is bytes; got {shown(record)}"
                            f"{'; write tensor.numpy()' if hasattr(record, 'numpy') else ''}")
        self._require_open()
        self._held.append(bytes(content))
        self._room -= len(content)
        if self._room < 0 or len(self._held) == _HELD:
            self._put()

    def _require_open(self) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"the writer of '{self._path}' is closed")

    def _put(self) -> None:
        if not self._held:
            return
        # Emptied first: what fails to be written must not be written again by `close`.
        held, self._held, self._room = self._held, [], _HELD_BYTES
        content = framed(held)
        with errors(self._path):
            self._file.write(self._packer.compress(content) if self._packer else content)

    def flush(self) -> None:
        """Hand what was written to the system. Raises FailedPreconditionError: the writer is
        closed."""
        self._require_open()
        self._put()
        with errors(self._path):
            if self._packer:
                self._file.write(self._packer.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """End the file."""
        if self._file.closed:
            return
        self._put()
        with errors(self._path):
            if self._packer:
                self._file.write(self._packer.flush())
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # What is still held, or in the packer, would be lost. `_room` is set last: without it the
        # file was never opened.
        if hasattr(self, "_room"):
            self.close()


def framed(contents: Sequence[bytes]) -> bytes:
    """Records as they stand in a file."""
    lengths = np.array([len(c) for c in contents], np.int64)
    heads = lengths.astype("<i8").view(np.uint8)
    of_lengths = of_parts(heads, np.arange(0, len(heads), 8), np.full(len(contents), 8))
    whole = np.frombuffer(b"".join(contents), np.uint8)
    of_contents = of_parts(whole, np.cumsum(lengths) - lengths, lengths)
    parts: list[bytes] = []
    for content, length, check in zip(contents, of_lengths.tolist(), of_contents.tolist()):
        parts += _HEAD.pack(len(content), length), content, _CHECK.pack(check)
    return b"".join(parts)


def records(path: object, kind: str = "", chunk: int = 1 << 18) -> Iterator[bytes]:
    """The records of a file, one after another.

    Args:
        kind: the compression: "", "ZLIB" or "GZIP".
        chunk: bytes that are read at once.

    Raises:
        DataLossError: the file is damaged or cut short. It names the record and its place; those
            before it have been given.
        NotFoundError: there is no such file.
    """
    with Stream(path, kind) as stream:
        number, data = 0, b""
        while more := _more(stream, chunk, number):
            start = stream.at - len(more) - len(data)
            data += more
            parts, end = _frames(data)
            yield from _checked(data, parts, stream.path, start, number)
            number += len(parts)
            data = data[end:]
            if len(data) >= 12:
                data = _completed(stream, data, start + end, number)
        if data:
            raise _damaged(stream.path, stream.at - len(data), number, "it is cut short")


def _more(stream: Stream, size: int, number: int) -> bytes:
    try:
        return stream.read(size)
    except DataLossError as error:
        raise DataLossError(f"{error}; the records before record {number} (from 0) are "
                            f"whole") from None


def _completed(stream: Stream, data: bytes, start: int, number: int) -> bytes:
    """The beginning of a record with the rest of it, where that is long. Raises DataLossError: its
    length is damaged, or greater than what the file can hold."""
    length, check = _HEAD.unpack_from(data)
    if masked_crc32c(data[:8]) != check:
        raise _damaged(stream.path, start, number, "the checksum of its length is another")
    missing = length + 16 - len(data)
    # A damaged length is found before memory is asked for it.
    if missing > stream.most():
        raise _damaged(stream.path, start, number,
                       f"it claims {length} bytes, where at most "
                       f"{max(stream.most() + len(data) - 12, 0)} are left: it is damaged or cut "
                       f"short")
    # A short rest comes with the next chunk; a long one would be copied again with each.
    if missing <= 1 << 18:
        return data
    return data + stream.exactly(missing)


def _frames(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Where the bytes of each whole record begin and their length; and where the rest begins."""
    places, at, size = [], 0, len(data)
    while at + 12 <= size:
        length = _LENGTH.unpack_from(data, at)[0]
        # Compared so, since a damaged length may be near 2^64.
        if length > size - at - 16:
            break
        places.append((at + 12, length))
        at += 16 + length
    return places, at


def _checked(data: bytes, parts: list[tuple[int, int]], path: str, start: int,
             number: int) -> Iterator[bytes]:
    """The records in `data`, up to the first whose checksums are not its own."""
    raw = np.frombuffer(data, np.uint8)
    begins, lengths = np.array(parts, np.int64).reshape(-1, 2).T
    heads = of_parts(raw, begins - 12, np.full(len(begins), 8)) == _words(raw, begins - 4)
    whole = of_parts(raw, begins, lengths) == _words(raw, begins + lengths)
    # All records of the chunk at once; the first that is wrong ends it.
    good = heads & whole
    count = len(good) if good.all() else int(good.argmin())
    for begin, length in parts[:count]:
        yield data[begin:begin + length]
    if count < len(good):
        what = "its bytes" if heads[count] else "its length"
        raise _damaged(path, start + int(begins[count]) - 12, number + count,
                       f"the checksum of {what} is another")


def _words(raw: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The uint32 at each of these places."""
    return raw[at[:, None] + np.arange(4)].copy().view("<u4")[:, 0]


def _damaged(path: str, at: int, number: int, what: str) -> DataLossError:
    # A file of another kind goes wrong at its first byte.
    doubt = " (is this a TFRecord file, and not compressed?)" if not at else ""
    return DataLossError(f"corrupted record at {at} in '{path}': record {number} (from 0) is "
                         f"damaged: {what}{doubt}")

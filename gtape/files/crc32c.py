"""CRC-32C (Castagnoli), masked as TFRecord files hold it.

The checksum of a string is the exclusive or of what each byte gives by itself and its distance from
the end, so that NumPy looks all of them up at once: a table of 1,024 distances times 256 bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

_POLYNOMIAL = 0x82F63B78
_BLOCK = 1024
#: Below this many bytes a loop over bytes is faster than NumPy's calls.
_SHORT = 48
#: Bytes that are looked up at once: what comes of them stays in the processor's caches.
_TOGETHER = 1 << 15
_ONES = 0xFFFFFFFF
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
        first = _first()
        for byte in data:
            state = first[(state ^ byte) & 255] ^ state >> 8
        return state ^ _ONES
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


def _after(raw: np.ndarray, state: int, table: np.ndarray, rows: np.ndarray) -> int:
    """The state after bytes of which there are fewer than a block."""
    first = _first()
    for byte in raw[:4].tolist():
        state = first[(state ^ byte) & 255] ^ state >> 8
    rest = raw[4:]
    if not len(rest):
        return state
    if len(rest) < 4:
        for byte in rest.tolist():
            state = first[(state ^ byte) & 255] ^ state >> 8
        return state
    joined = rest.copy()
    joined[:4] ^= np.frombuffer(state.to_bytes(4, "little"), np.uint8)
    return int(np.bitwise_xor.reduce(table.take(joined + rows[_BLOCK - len(joined):])))


def _moved(state: int, table: np.ndarray) -> int:
    """The state after a block of zeros."""
    top = (_BLOCK - 1) * 256
    return int(table[top + (state & 255)] ^ table[top - 256 + (state >> 8 & 255)]
               ^ table[top - 512 + (state >> 16 & 255)] ^ table[top - 768 + (state >> 24)])


def masked(crc: int) -> int:
    """A checksum as it stands in a file: a checksum of bytes with their own in them is no good."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ONES


def masked_crc32c(data: bytes | memoryview) -> int:
    """The masked checksum of the bytes."""
    return masked(crc32c(data))


def of_parts(raw: np.ndarray, starts: np.ndarray, lengths: TensorLike) -> np.ndarray:
    """The masked checksums of many parts of an array of bytes, as uint32."""
    begin, size = np.asarray(starts, np.intp), np.asarray(lengths, np.intp)
    checks = np.empty(len(begin), np.uint32)
    width = 4
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

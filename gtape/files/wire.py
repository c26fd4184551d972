"""Protobuf's wire format: numbered fields of varints, fixed words and byte strings.

The format is that of protobuf.dev/programming-guides/encoding. A length is compared with the bytes
that are left before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
#: Fewer numbers than this are handled one by one: NumPy's calls cost more than they save.
_FEW = 24
_LONGEST_VARINT = 10

Buffer = bytes | memoryview


def varint(number: int) -> bytes:
    """A number as a varint; a negative one as its 64-bit two's complement."""
    if 0 <= number < 128:
        return bytes((number,))
    # Python's integers have no sign bit to end at: two's complement of 64 bits.
    number &= 0xFFFFFFFFFFFFFFFF
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def signed(number: int) -> int:
    """The int64 whose two's complement `number` is."""
    return number - (1 << 64) if number >> 63 else number


def delimited(number: int, content: Buffer) -> bytes:
    """A field that holds bytes, a text or a message."""
    return b"".join((varint(number << 3 | DELIMITED), varint(len(content)), content))


def varints(numbers: Sequence[int]) -> bytes:
    """int64 numbers as varints, one after another."""
    if len(numbers) < _FEW:
        return b"".join([varint(n) for n in numbers])
    # Unsigned, so that a shift to the right brings zeros in.
    words = np.asarray(numbers, np.int64).view(np.uint64)
    lengths = np.ones(len(words), np.int64)
    for bits in range(7, 64, 7):
        lengths += words >= np.uint64(1 << bits)
    starts = np.cumsum(lengths) - lengths
    content = np.empty(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max())):
        long = lengths > place
        part = (words[long] >> np.uint64(7 * place)).astype(np.uint8) & 127
        content[starts[long] + place] = part | ((lengths[long] > place + 1) << 7).astype(np.uint8)
    return content.tobytes()


def read_varint(data: Buffer, at: int, what: str) -> tuple[int, int]:
    """The varint at a place, and the place after it. Raises InvalidArgumentError: the bytes end
    within it, or it is longer than 64 bits."""
    number = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            # Ten groups of seven are 70 bits; what is beyond 64 is dropped, as protobuf does.
            return number & 0xFFFFFFFFFFFFFFFF, place + 1
        shift += 7
    raise damaged(what, at, f"a number of more than {len(data[at:at + 10])} bytes")


def read_varints(data: Buffer, what: str) -> np.ndarray:
    """All varints of a packed field, as int64. Raises InvalidArgumentError: the bytes end within
    the last, or one is longer than 64 bits."""
    if len(data) < _FEW:
        numbers, at = [], 0
        while at < len(data):
            number, at = read_varint(data, at, what)
            numbers.append(signed(number))
        return np.array(numbers, np.int64)
    raw = np.frombuffer(data, np.uint8)
    last = raw < 128
    # Small numbers, such as labels and bytes: each is its own varint.
    if last.all():
        return raw.astype(np.int64)
    ends = np.flatnonzero(last)
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise damaged(what, len(raw), "the end of the bytes within a number")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends + 1 - starts
    if lengths.max() > _LONGEST_VARINT:
        raise damaged(what, int(starts[lengths.argmax()]), "a number of more than 10 bytes")
    words = np.zeros(len(ends), np.uint64)
    for place in range(int(lengths.max())):
        long = lengths > place
        words[long] |= (raw[starts[long] + place] & 127).astype(np.uint64) << np.uint64(7 * place)
    return words.view(np.int64)


def fields(data: Buffer, what: str) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field: an int of a varint, else the bytes of the value.
    Raises InvalidArgumentError: a field reaches beyond the bytes, or is of no known wire type."""
    view, at, size = memoryview(data), 0, len(data)
    while at < size:
        start, key = at, view[at]
        if key < 128:  # as all are but those of fields numbered 16 and more
            at += 1
        else:
            key, at = read_varint(view, at, what)
        number, wire = key >> 3, key & 7
        if not number:
            raise damaged(what, start, "a field of the number 0")
        if wire == VARINT:
            value, at = read_varint(view, at, what)
            yield number, wire, value
            continue
        if wire == DELIMITED:
            # Without a call, for the lengths of nearly all fields.
            if at < size and view[at] < 128:
                length, at = view[at], at + 1
            else:
                length, at = read_varint(view, at, what)
        elif wire in _WIDTHS:
            length = _WIDTHS[wire]
        else:
            raise damaged(what, start, f"a field of the wire type {wire}")
        if length > size - at:
            raise damaged(what, start, f"a field of {length} bytes where {size - at} are left")
        yield number, wire, view[at:at + length]
        at += length


def damaged(what: str, at: int, problem: str) -> InvalidArgumentError:
    """The error for bytes that are no message `what`."""
    return InvalidArgumentError(f"could not parse {what}: at byte {at} there is {problem}; the "
                                f"bytes are damaged, cut short, or something else")


def text(value: memoryview, what: str) -> str:
    """A field's text. Raises InvalidArgumentError: it is no UTF-8."""
    try:
        return str(value, "utf-8")
    except (UnicodeDecodeError, TypeError) as error:
        raise InvalidArgumentError(f"could not parse {what}: a text that is no UTF-8 ({error}); "
                                   f"the bytes are damaged or something else") from None

"""The values of features in many serialized Examples.

Bytes are found without making messages: of each Example only where the wanted features stand, and
the numbers of all of them are then read together. Many examples are read side by side (`Table`):
NumPy reads the same field of each, then the next one. Writers lay out all examples of a file alike
but for lengths; what is laid out otherwise is read example by example (`Each`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.files import wire

_KINDS = {1: "string", 2: "float32", 3: "int64"}
_NUMBERS = {name: number for number, name in _KINDS.items()}
_WHAT = "bytes as an Example"
#: Fewer examples are read one by one: NumPy's calls cost more than they save.
_FEW = 8
#: Tags of delimited fields: of what is first in a message, and of the value in an entry of a map.
_FIRST, _VALUE = 10, 18
#: Lengths of more bytes than this are left to the other way of reading.
_LONGEST = 5


class Held(NamedTuple):
    """What a feature holds: 1 for bytes, 2 for floats, 3 for integers; and its list in bytes."""

    kind: int
    content: wire.Buffer


class ExampleColumn(NamedTuple):
    """The values of a feature in all examples, one after another, and how many each has; -1 of
    those that do not have the feature."""

    values: np.ndarray
    counts: np.ndarray


class Each:
    """Examples of which each says what it holds by name."""

    def __init__(self, examples: Sequence[dict[str, Held]]) -> None:
        self.examples = examples

    @classmethod
    def of(cls, examples: Sequence[bytes], wanted: Collection[str]) -> Each:
        """Of serialized Examples the wanted features; of one that is there twice the last counts.
        Raises InvalidArgumentError: the bytes are no Examples."""
        return cls([_held(example, wanted) for example in examples])

    def column(self, name: str, dtype: DType) -> ExampleColumn:
        """The values of a feature in all examples."""
        return column(name, dtype, [e.get(name) for e in self.examples])


def _held(example: bytes, wanted: Collection[str]) -> dict[str, Held]:
    held: dict[str, Held] = {}
    for number, kind, value in wire.fields(example, _WHAT):
        if number == 1 and kind == wire.DELIMITED:
            of_features(value, wanted, held)
    return held


def of_features(features: wire.Buffer, wanted: Collection[str], into: dict[str, Held]) -> None:
    """Enter the wanted features of a serialized Features message into `found`."""
    for number, kind, value in wire.fields(features, _WHAT):
        if number == 1 and kind == wire.DELIMITED:
            name, feature = entry(value)
            if name in wanted:
                into[name] = of_feature(feature)


def entry(message: memoryview) -> tuple[str, wire.Buffer]:
    """The key and the bytes of the value of an entry of a map."""
    size = len(message)
    # The common case, a short key and a short value, without the loop over fields.
    if size > 4 and message[0] == 10 and message[1] < 128 and size > message[1] + 3:
        at = 2 + message[1]
        if message[at] == 18 and message[at + 1] < 128 and at + 2 + message[at + 1] == size:
            return wire.text(message[2:at], _WHAT), message[at + 2:]
    name, content = "", b""
    for number, kind, value in wire.fields(message, _WHAT):
        if kind != wire.DELIMITED:
            continue
        if number == 1:
            name = wire.text(value, _WHAT)
        elif number == 2:
            content = value
    return name, content


def of_feature(feature: wire.Buffer) -> Held:
    """What a serialized Feature holds; the kind 0 for nothing."""
    size = len(feature)
    # The common case, one short list, without the loop over fields.
    if size > 1 and feature[0] in (10, 18, 26) and feature[1] < 128 and feature[1] + 2 == size:
        return Held(feature[0] >> 3, feature[2:])
    held = Held(0, b"")
    for number, kind, value in wire.fields(feature, _WHAT):
        if number in _KINDS and kind == wire.DELIMITED:
            content = b"".join((held.content, value)) if number == held.kind else value
            held = Held(number, content)
    return held


def column(name: str, dtype: DType, features: Sequence[Held | None]) -> ExampleColumn:
    """The values of a feature, of which what each example holds is given. Raises
    InvalidArgumentError: one holds values of another type, or bytes that are no list of them."""
    number = _NUMBERS[dtype.name]
    counts = np.full(len(features), -1, np.int64)
    parts: list[Any] = []
    for i, feature in enumerate(features):
        if feature is None or not feature.kind:
            continue
        if feature.kind != number:
            raise _mismatch(name, i, feature, dtype)
        counts[i] = 0
        parts.append(_strings(feature.content) if number == 1 else _packed(feature.content, number))
    # A feature that is there without values has 0 of them, one that is not there -1.
    with_it = np.flatnonzero(counts == 0)
    if number == 1:
        counts[with_it] = [len(p) for p in parts]
        return ExampleColumn(of_strings([value for part in parts for value in part]), counts)
    values, counts[with_it] = of_packed(name, number, parts)
    return ExampleColumn(values, counts)


def of_strings(values: Sequence[bytes]) -> np.ndarray:
    """A vector of byte strings."""
    return np.fromiter(values, object, len(values))


def of_packed(name: str, number: int, parts: Sequence[wire.Buffer],
              ) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all parts, and how many each has: packed floats, or varints. Raises
    InvalidArgumentError: a part is cut short."""
    joined, lengths = b"".join(parts), np.array([len(p) for p in parts], np.int64)
    if number == 2:
        if (lengths % 4).any():
            raise wire.damaged(f"the floats of '{name}'", 0, "a part of a float32")
        return np.frombuffer(joined, "<f4").astype(np.float32), lengths // 4
    counts = _ends(name, joined, lengths)
    return wire.read_varints(joined, f"the integers of '{name}'"), counts


def alone(name: str, dtype: DType, feature: Held) -> np.ndarray:
    """The values of a feature of one example. Raises InvalidArgumentError: as `column`."""
    if feature.kind != _NUMBERS[dtype.name]:
        raise _mismatch(name, 0, feature, dtype)
    if feature.kind == 1:
        return of_strings(_strings(feature.content))
    packed = _packed(feature.content, feature.kind)
    if feature.kind == 3:
        return wire.read_varints(packed, f"the integers of '{name}'")
    if len(packed) % 4:
        raise wire.damaged(f"the floats of '{name}'", 0, "a part of a float32")
    return np.frombuffer(packed, "<f4").astype(np.float32)


def _mismatch(name: str, number: int, feature: Held, dtype: DType) -> InvalidArgumentError:
    return InvalidArgumentError(f"Key: {name}, Index: {number}.  Data types don't match. Data "
                                f"type: {_KINDS[feature.kind]} but expected type: {dtype.name}")


def _strings(content: wire.Buffer) -> list[bytes]:
    return [bytes(value) for number, kind, value in wire.fields(content, _WHAT)
            if number == 1 and kind == wire.DELIMITED]


def _packed(content: wire.Buffer, number: int) -> bytes | memoryview:
    """The numbers of a list, packed: the bytes of floats, the varints of integers."""
    size = len(content)
    if not size:
        return b""
    # As every writer packs few numbers: one field, whose length has one byte.
    if size > 1 and content[0] == 10 and content[1] < 128 and content[1] + 2 == size:
        return content[2:]
    parts = []
    for field, kind, value in wire.fields(content, _WHAT):
        if field != 1:
            continue
        if kind == wire.VARINT and number == 3:
            parts.append(wire.varint(value))
        elif kind == wire.DELIMITED or (kind == wire.FIXED32 and number == 2):
            parts.append(value)
        else:
            raise wire.damaged(_WHAT, 0, f"a number of the wire type {kind}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _ends(name: str, joined: bytes, lengths: np.ndarray) -> np.ndarray:
    """How many varints each part of `joined` holds. Raises InvalidArgumentError: a part ends within
    one."""
    # The last byte of a varint is the one below 128.
    last = np.frombuffer(joined, np.uint8) < 128
    ends = np.cumsum(lengths)
    full = lengths > 0
    if not last[ends[full] - 1].all():
        raise wire.damaged(f"the integers of '{name}'", len(joined), "a number that is cut short")
    until = np.concatenate([[0], np.cumsum(last)])
    return until[ends] - until[ends - lengths]


class _Otherwise(Exception):
    """An example is laid out otherwise."""


def source(examples: Sequence[bytes], wanted: Collection[str]) -> Each | Table:
    """What gives the columns of the wanted features. Raises InvalidArgumentError: the bytes are no
    Examples."""
    if len(examples) >= _FEW:
        # Damaged ones too: reading one by one says which it is, and where.
        with suppress(_Otherwise, IndexError, InvalidArgumentError):
            return Table(examples, wanted)
    return Each.of(examples, wanted)


class Table:
    """Where the wanted features of examples stand: by name which kind of values each example has, 0
    for none, and where their list begins and ends. Raises _Otherwise: that cannot be found for all
    at once."""

    def __init__(self, examples: Sequence[bytes], wanted: Collection[str]) -> None:
        self._data = b"".join(examples)
        # A few bytes more, so that what is read beyond the last example is no field.
        self._raw = np.frombuffer(self._data + bytes(2 * _LONGEST), np.uint8)
        self._wanted = {name.encode(): name for name in wanted}
        self._places: dict[str, np.ndarray] = {}
        self._count = len(examples)
        # One walk finds all: each feature is then one slice of what was noted.
        self._walk(np.cumsum([len(e) for e in examples]))

    def _walk(self, ends: np.ndarray) -> None:
        """Read the entries of all examples, one after the other."""
        at, stop = self._opened(np.concatenate([[0], ends[:-1]]), ends, _FIRST)
        if (stop != ends).any():
            raise _Otherwise
        # Which examples have entries left; those of fewer features drop out first.
        rows = np.arange(self._count)
        while True:
            left = at < stop
            if not left.all():
                rows, at, stop = rows[left], at[left], stop[left]
            if not len(rows):
                return
            size = self._alike(rows, at, stop)
            at = at + size if size else self._entry(rows, at, stop)

    def _alike(self, rows: np.ndarray, at: np.ndarray, stop: np.ndarray) -> int:
        """The size of the entries at these places, which are noted, where all begin with the same
        bytes up to the list; 0 where they do not."""
        # One writer lays out all its examples alike: then the bytes before the list, which say the
        # name, the kind and the lengths, are the same in each, and one comparison reads them all.
        begin, data = int(at[0]), self._data
        size, place = wire.read_varint(data, begin + 1, _WHAT)
        end = place + size
        key_size, key = wire.read_varint(data, place + 1, _WHAT)
        _, value = wire.read_varint(data, key + key_size + 1, _WHAT)
        length, first = wire.read_varint(data, value + 1, _WHAT)
        kind = data[value] >> 3
        tags = data[begin], data[place], data[key + key_size], data[value]
        if tags != (_FIRST, _FIRST, _VALUE, kind << 3 | 2) or not 1 <= kind <= 3 or (
                first + length != end):
            return 0
        head = self._raw[begin:first]
        if (at + (end - begin) > stop).any() or (
                self._raw.take(at[:, None] + np.arange(len(head)), mode="clip") != head).any():
            return 0
        name = data[key:key + key_size]
        wanted = self._wanted.get(name)
        # A name that is no UTF-8 is an error, which the other way of reading finds and names.
        if wanted is None and not name.isascii():
            return 0
        if wanted is not None:
            begins = at + (first - begin)
            self._of(wanted)[:, rows] = np.full(len(at), kind), begins, begins + length
        return end - begin

    def _of(self, name: str) -> np.ndarray:
        return self._places.setdefault(name, np.zeros((3, self._count), np.int64))

    def _entry(self, rows: np.ndarray, at: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Note the entries at these places, and give the places after them."""
        entry, after = self._opened(at, stop, _FIRST)
        key, key_end = self._opened(entry, after, _FIRST)
        value, value_end = self._opened(key_end, after, _VALUE)
        kinds = self._raw[value] >> 3
        # A field more, or the fields in another order.
        if (value_end != after).any() or (kinds < 1).any() or (kinds > 3).any():
            raise _Otherwise
        first, last = self._opened(value, after, kinds << 3 | 2)
        if (last != after).any():
            raise _Otherwise
        self._enter(rows, key, key_end, np.stack([kinds, first, last]))
        return after

    def _opened(self, at: np.ndarray, stop: np.ndarray, tag: int | np.ndarray,
                ) -> tuple[np.ndarray, np.ndarray]:
        """Where the content of the fields at these places begins and ends."""
        if (self._raw[at] != tag).any():
            raise _Otherwise
        length, begin = self._lengths(at + 1)
        end = begin + length
        if (end > stop).any():
            raise _Otherwise
        return begin, end

    def _lengths(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The varints at these places, and the places after them."""
        raw = self._raw
        byte = raw[at].astype(np.int64)
        # Nearly all lengths have one byte.
        if byte.max(initial=0) < 128:
            return byte, at + 1
        lengths, at, more = byte & 127, at + 1, byte > 127
        for place in range(1, _LONGEST):
            if not more.any():
                return lengths, at
            byte = raw[at].astype(np.int64)
            lengths += np.where(more, (byte & 127) << 7 * place, 0)
            at = at + more
            more &= byte > 127
        raise _Otherwise

    def _enter(self, rows: np.ndarray, key: np.ndarray, key_end: np.ndarray,
               places: np.ndarray) -> None:
        """Note the entries of some rows, of which most have the same key."""
        sizes = key_end - key
        while len(rows):
            name = self._raw[key[0]:key_end[0]].tobytes()
            letters = self._raw.take(key[:, None] + np.arange(len(name)), mode="clip")
            same = (sizes == len(name)) & (letters == np.frombuffer(name, np.uint8)).all(1)
            wanted = self._wanted.get(name)
            if wanted is not None:
                self._of(wanted)[:, rows[same]] = places[:, same]
            elif not name.isascii():
                raise _Otherwise
            # Usually at once: each round enters all entries that have the name of the first.
            if same.all():
                return
            other = ~same
            rows, key, key_end, sizes = rows[other], key[other], key_end[other], sizes[other]
            places = places[:, other]

    def column(self, name: str, dtype: DType) -> ExampleColumn:
        """The values of a feature in all examples. Raises InvalidArgumentError: one holds values of
        another type, or bytes that are no list of them."""
        kinds, first, last = self._of(name)
        try:
            if (kinds != kinds[0]).any():
                raise _Otherwise
            full = np.flatnonzero(first < last)
            begin, end = self._opened(first[full], last[full], _FIRST)
            if (end != last[full]).any():
                raise _Otherwise
        except _Otherwise:
            return column(name, dtype, self._held(kinds, first, last))
        if dtype.name != _KINDS.get(int(kinds[0])):
            return column(name, dtype, self._held(kinds, first, last))
        counts = np.zeros(self._count, np.int64)
        data = self._data
        parts = [data[a:b] for a, b in zip(begin.tolist(), end.tolist())]
        if kinds[0] == 1:
            counts[full] = 1
            return ExampleColumn(of_strings(parts), counts)
        values, counts[full] = of_packed(name, int(kinds[0]), parts)
        return ExampleColumn(values, counts)

    def _held(self, kinds: np.ndarray, first: np.ndarray, last: np.ndarray) -> list[Held]:
        # Slices of a view copy nothing.
        view = memoryview(self._data)
        return [Held(kind, view[a:b])
                for kind, a, b in zip(kinds.tolist(), first.tolist(), last.tolist())]

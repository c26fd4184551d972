"""Where the features of many serialized Examples stand, found for all of them at once.

The examples are read side by side: NumPy reads the same field of each, then the next one. Writers
lay out all examples of a file alike but for lengths; what is laid out otherwise is read example by
example.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.files import wire
from gtape.files.example_columns import Each, ExampleColumn, Held, column, of_packed, of_strings

#: Fewer examples are read one by one: NumPy's calls cost more than they save.
_FEW = 8
#: Tags of delimited fields: of what is first in a message, and of the value in an entry of a map.
_FIRST, _VALUE = 10, 18
_WHAT = "bytes as an Example"
#: Lengths of more bytes than this are left to the other way of reading.
_LONGEST = 5


class _Otherwise(Exception):
    """An example is laid out otherwise."""


def source(examples: Sequence[bytes], wanted: Collection[str]) -> Each | Table:
    """What gives the columns of the wanted features.

    Raises:
        InvalidArgumentError: the bytes are no Examples.
    """
    if len(examples) >= _FEW:
        try:
            return Table(examples, wanted)
        except (_Otherwise, IndexError, InvalidArgumentError):
            pass
    return Each.of(examples, wanted)


class Table:
    """Where the wanted features of examples stand: by name which kind of values each example has,
    0 for none, and where their list begins and ends.

    Raises:
        _Otherwise: that cannot be found for all at once.
    """

    def __init__(self, examples: Sequence[bytes], wanted: Collection[str]) -> None:
        self._data = b"".join(examples)
        # A few bytes more, so that what is read beyond the last example is no field.
        self._raw = np.frombuffer(self._data + bytes(2 * _LONGEST), np.uint8)
        self._wanted = {name.encode(): name for name in wanted}
        self._places: dict[str, np.ndarray] = {}
        self._count = len(examples)
        self._walk(np.cumsum([len(e) for e in examples]))

    def _walk(self, ends: np.ndarray) -> None:
        """Read the entries of all examples, one after the other."""
        at, stop = self._opened(np.concatenate([[0], ends[:-1]]), ends, _FIRST)
        if (stop != ends).any():
            raise _Otherwise
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
        if byte.max(initial=0) < 128:
            return byte, at + 1
        found, at, more = byte & 127, at + 1, byte > 127
        for place in range(1, _LONGEST):
            if not more.any():
                return found, at
            byte = raw[at].astype(np.int64)
            found += np.where(more, (byte & 127) << 7 * place, 0)
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
            if same.all():
                return
            other = ~same
            rows, key, key_end, sizes = rows[other], key[other], key_end[other], sizes[other]
            places = places[:, other]

    def column(self, name: str, dtype: DType) -> ExampleColumn:
        """The values of a feature in all examples.

        Raises:
            InvalidArgumentError: one holds values of another type, or bytes that are no list of
                them.
        """
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
        if dtype.name != {1: "string", 2: "float32", 3: "int64"}.get(int(kinds[0])):
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
        view = memoryview(self._data)
        return [Held(kind, view[a:b])
                for kind, a, b in zip(kinds.tolist(), first.tolist(), last.tolist())]

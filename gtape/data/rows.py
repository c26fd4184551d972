"""Rows: elements that are rows of arrays, found by vectors of indices.

Pipelines that only choose and order the rows of arrays in memory pass on which rows are next, many
at once, instead of the rows. A *pick* says which rows of an array: a `range` or an int64 vector; of
rows that are read from files it is a vector of the rows themselves. A *chunk* is a tuple of picks,
all equally long, one for each source of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TypeSpec
from gtape.data import elements, stacking
from gtape.data.failures import failed

#: What a pass gives, one after the other.
Elements = Iterator
#: Which rows: a range of them, or their indices.
Pick = range | np.ndarray
Chunk = tuple[Pick, ...]
#: (pick) -> the rows, as an array.
Column = Callable[[Pick], np.ndarray]

#: The bytes, and the number, of rows gathered at once where they are wanted one by one: a block
#: that stays in a processor's cache until its rows are handed out.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 20, 256
#: To so many rows functions are applied at once: a call of many costs about as much as a few calls
#: of one.
_WORTHWHILE = 8


def vector(pick: Pick) -> np.ndarray:
    """A pick as indices."""
    # As `range`, and not as indices, for as long as can be: rows of a range are a slice, which
    # copies nothing.
    if type(pick) is range:
        return np.arange(pick.start, pick.stop, pick.step, dtype=np.int64)
    return pick


def column_of(array: np.ndarray) -> Column:
    """The rows of an array; those of a range without a copy."""
    def take(pick: Pick) -> np.ndarray:
        if type(pick) is range:
            return array[pick.start:pick.stop:pick.step]
        return array.take(pick, axis=0)

    return take


def progression(start: int, step: int) -> Column:
    """start + step · i."""
    def take(pick: Pick) -> np.ndarray:
        numbers = vector(pick) * step
        numbers += start
        return numbers

    return take


class Rows:
    """A sequence of rows.

    Args:
        columns: for every leaf of an element the place of its pick in a chunk, and the column.
        spec: of the element that the columns make.
        chunks: starts a new pass, and gives its chunks.
        row_bytes: about how large a row is.
        calls: the functions that are applied to a row, one after the other.
        read: the picks are the rows themselves.
    """

    def __init__(self, columns: Sequence[tuple[int, Column]], spec: Any,
                 chunks: Callable[[], Elements[Chunk]], row_bytes: int,
                 calls: tuple[Any, ...] = (), read: bool = False) -> None:
        self.columns, self.row_bytes = list(columns), row_bytes
        self.chunks, self.calls, self.read = chunks, calls, read
        self._pack = elements.packer(spec)

    def reordered(self, stream: Callable[[Elements[Chunk]], Elements[Chunk]]) -> Rows:
        """The same rows as `stream` makes of the chunks."""
        return self.passing(lambda: stream(self.chunks()))

    def passing(self, chunks: Callable[[], Elements[Chunk]]) -> Rows:
        # A copy keeps the packer, whose making compiles a line of Python.
        rows = copy(self)
        rows.chunks = chunks
        return rows

    def mapped(self, call: Any) -> Rows:
        """The rows after a pure function."""
        rows = copy(self)
        rows.calls = (*self.calls, call)
        return rows

    def zipped(self, others: Sequence[Rows], spec: tuple[TypeSpec, TypeSpec]) -> Rows | None:
        """The rows side by side; None where functions are to be applied to some, or some are
        read."""
        every = [self, *others]
        # A function gets the leaves of its own side alone, and a chunk of records is the rows
        # themselves: neither can be cut to the other side's chunks without computing what may never
        # be asked for.
        if any(r.calls or r.read for r in every):
            return None
        # The picks of all sides stand side by side in a chunk: the places of the later sides move
        # on.
        columns, at = [], 0
        for rows in every:
            width = 1 + max(place for place, _ in rows.columns)
            columns += [(at + place, column) for place, column in rows.columns]
            at += width
        return Rows(columns, spec, lambda: _abreast([r.chunks() for r in every]),
                    sum(r.row_bytes for r in every))

    def batch(self, chunk: Chunk, first: int) -> Any:
        """The rows of a chunk, of which the first has this number, as one element."""
        leaves = self._leaves(chunk)
        for i, call in enumerate(self.calls):
            results = call.batched(leaves)
            # Where the function of many fails or is not the same bit for bit, the rest of the
            # functions go row by row, which also says of which element the error is.
            if results is None:
                return self._row_by_row(leaves, self.calls[i:], len(chunk[0]), first)
            leaves = results
        return self.pack(leaves)

    def where(self, predicate: Any) -> Rows | None:
        """The rows for which a function is true, which is called for many of them at once; None
        where that cannot be."""
        # One that draws or writes may not be called for rows ahead of those that are asked for.
        if not all(call.pure and call.vectorised for call in (*self.calls, predicate)):
            return None
        return self.reordered(lambda chunks: self._kept(chunks, predicate))

    def _kept(self, chunks: Elements[Chunk], predicate: Any) -> Elements[Chunk]:
        calls = (*self.calls, predicate)
        # Larger blocks than of elements: of most of their rows nothing may be left to hand out.
        for first, part in _blocks(chunks, _BLOCK_ROWS // 8, self._most(4 * _BLOCK_ROWS)):
            mask = self._mask(part, calls, first)
            if mask.any():
                yield tuple([vector(pick)[mask] for pick in part])

    def _mask(self, chunk: Chunk, calls: Sequence[Any], first: int) -> np.ndarray:
        leaves = self._leaves(chunk)
        whole: Any = leaves
        for call in calls:
            whole = None if whole is None else call.batched(whole)
        if whole is not None:
            mask: np.ndarray = whole[0]._a
            return mask
        return np.array([bool(_called(calls, row, number)[0]._a)
                         for number, row in enumerate(_by_row(leaves, len(chunk[0])), first)])

    def _leaves(self, chunk: Chunk) -> list[Any]:
        return [elements.tensor(column(chunk[at])) for at, column in self.columns]

    def _most(self, rows: int) -> int:
        """How many rows are gathered at once: no more than `rows`."""
        return max(1, min(rows, _BLOCK_BYTES // max(1, self.row_bytes)))

    def _row_by_row(self, leaves: Sequence[EagerTensor], calls: Sequence[Any], count: int,
                    first: int) -> Any:
        results = [_called(calls, row, number)
                   for number, row in enumerate(_by_row(leaves, count), first)]
        return self.pack([stacking.stacked(column) for column in zip(*results)])

    def pack(self, leaves: Sequence[Any]) -> Any:
        """The structure of an element for its leaves."""
        return self.calls[-1].pack(leaves) if self.calls else self._pack(leaves)

    def elements(self) -> Elements[Any]:
        """The rows one by one; after an error the next ones can still be asked for."""
        return map(_given, self._found()) if self.calls else self._found()

    def _found(self) -> Elements[Any]:
        """The rows one by one, and what went wrong in the place of some."""
        # The first element comes at once: a block of one.
        for first, part in _blocks(self.chunks(), 1, self._most(_BLOCK_ROWS)):
            yield from self._unbatched(part, first)

    def _unbatched(self, chunk: Chunk, first: int) -> Elements[Any]:
        whole, calls = self._leaves(chunk), self.calls
        count = len(chunk[0])
        # As many functions as can be of the whole block, the rest row by row.
        while calls and count >= _WORTHWHILE:
            results = calls[0].batched(whole)
            if results is None:
                break
            whole, calls = results, calls[1:]
        pack = self.pack
        if not calls:
            yield from map(pack, _by_row(whole, count))
            return
        for number, row in enumerate(_by_row(whole, count), first):
            try:
                element: Any = pack(_called(calls, row, number))
            except Exception as error:
                # Not raised here: a generator that raises is at its end, and the next rows, which
                # `ignore_errors` goes on to, would be lost.
                element = _Failure(error)
            yield element


def _blocks(chunks: Iterable[Chunk], size: int, most: int) -> Elements[tuple[int, Chunk]]:
    """The same rows in blocks, each twice as large as the one before up to `most`, with the numbers
    of their first rows."""
    first = 0
    for chunk in chunks:
        at, end = 0, len(chunk[0])
        while at < end:
            part = tuple([pick[at:at + size] for pick in chunk])
            yield first, part
            at += size
            first += len(part[0])
            size = min(2 * size, most)


def _by_row(leaves: Sequence[Any], count: int) -> Elements[tuple[Any, ...]]:
    return zip(*[stacking.leaf_rows(leaf, count) for leaf in leaves])


class _Failure(NamedTuple):
    """An error in the place of an element."""

    error: Exception


def _given(element: object) -> Any:
    if type(element) is _Failure:
        raise element.error
    return element


def _called(calls: Sequence[Any], row: Any, number: int) -> Any:
    """The leaves of a row after functions."""
    for call in calls:
        try:
            row = call.flat(row)
        except Exception as error:
            raise failed(error, call.what, number) from error
    return row


def _abreast(streams: Sequence[Elements[Chunk]]) -> Elements[Chunk]:
    """Chunks of several streams side by side, as long as the shortest stream."""
    held = [next(s, None) for s in streams]
    while all(chunk is not None for chunk in held):
        size = min(len(chunk[0]) for chunk in held if chunk is not None)
        if size:
            yield tuple([pick[:size] for chunk in held if chunk is not None for pick in chunk])
        for i, chunk in enumerate(held):
            assert chunk is not None
            rest = tuple([pick[size:] for pick in chunk])
            held[i] = rest if len(rest[0]) else next(streams[i], None)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Chunks one after the other as one."""
    if len(chunks) == 1:
        return chunks[0]
    return tuple([np.concatenate([vector(p) for p in picks]) for picks in zip(*chunks)])


def cut(chunks: Iterable[Chunk], size: int, drop_remainder: bool) -> Elements[Chunk]:
    """The same rows in chunks of `size`; the last one may be shorter."""
    held: list[Chunk] = []
    count = 0
    for chunk in chunks:
        at, end = 0, len(chunk[0])
        if held:
            at = min(size - count, end)
            held.append(tuple([pick[:at] for pick in chunk]))
            count += at
            if count < size:
                continue
            # Chunks that are cut off are views; only what lies across two chunks is copied
            # together.
            yield joined(held)
            held, count = [], 0
        while end - at >= size:
            yield tuple([pick[at:at + size] for pick in chunk])
            at += size
        if at < end:
            held, count = [tuple([pick[at:] for pick in chunk])], end - at
    if held and not drop_remainder:
        yield joined(held)

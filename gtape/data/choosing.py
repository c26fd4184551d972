"""Choosing: datasets of some of the elements of a dataset, and of all of them again."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as Elements
from itertools import chain, islice
from typing import Any

from gtape.core.errors import InvalidArgumentError
from gtape.data.base import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    Reordered,
    Selected,
)
from gtape.data.rows import Chunk, Rows
from gtape.data.stacking import merged_specs


class Take(Reordered):
    """The first elements; all for a negative count."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def _elements(self) -> Elements[object]:
        upstream = self._inputs[0]._iterate()
        return upstream if self._count < 0 else islice(upstream, self._count)

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        return chunks if self._count < 0 else _first(chunks, self._count)

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if self._count < 0 or count == UNKNOWN_CARDINALITY:
            return count
        return self._count if count == INFINITE_CARDINALITY else min(count, self._count)


def _first(chunks: Elements[Chunk], count: int) -> Elements[Chunk]:
    while count > 0:
        chunk = next(chunks, None)
        if chunk is None:
            return
        yield tuple([pick[:count] for pick in chunk])
        count -= len(chunk[0])


class Skip(Reordered):
    """The elements after the first; none for a negative count."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def _elements(self) -> Elements[object]:
        if self._count < 0:
            return iter(())
        return islice(self._inputs[0]._iterate(), self._count, None)

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        count = self._count
        if count < 0:
            return
        for chunk in chunks:
            if len(chunk[0]) > count:
                yield tuple([pick[count:] for pick in chunk])
            count = max(0, count - len(chunk[0]))

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if self._count < 0:
            return 0
        return count if count < 0 else max(0, count - self._count)


class Shard(Reordered):
    """Every `number`-th element, from `index` on."""

    def __init__(self, dataset: Dataset, number: int, index: int) -> None:
        if number < 1:
            raise InvalidArgumentError(f"shard: num_shards must be at least 1; got {number}")
        if not 0 <= index < number:
            raise InvalidArgumentError(f"shard: index must be in [0, {number}); got {index}")
        super().__init__(dataset)
        self._number, self._index = number, index

    def _elements(self) -> Elements[object]:
        return islice(self._inputs[0]._iterate(), self._index, None, self._number)

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        start = self._index
        for chunk in chunks:
            length = len(chunk[0])
            if length > start:
                yield tuple([pick[start::self._number] for pick in chunk])
            start = (start - length) % self._number

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        return count if count < 0 else len(range(self._index, count, self._number))


class Repeat(Selected):
    """The elements `count` times, each time by a new pass; without end for a negative count."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def _elements(self) -> Elements[object]:
        return _again(self._inputs[0]._iterate, self._count)

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if not self._count or not count:
            return 0
        if self._count < 0:
            return INFINITE_CARDINALITY
        return count if count < 0 else count * self._count

    def _rows(self) -> Rows | None:
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.passing(lambda: _again(rows.chunks, self._count))


def _again(start: Callable[[], Elements[object]], count: int) -> Elements[Any]:
    while count:
        empty = True
        for item in start():
            empty = False
            yield item
        if empty:  # or it would go on for ever, and never give an element
            return
        count -= 1


class Concatenate(Dataset):
    """The elements of one dataset, then those of another.

    Raises:
        TypeError: their structures or dtypes differ.
    """

    def __init__(self, first: Dataset, second: Dataset) -> None:
        super().__init__(
            lambda: merged_specs([first.element_spec, second.element_spec], "concatenate"),
            first, second)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        first, second = self._inputs
        return chain(first._iterate(), _late(second))

    def _cardinality(self) -> int:
        counts = [d._cardinality() for d in self._inputs]
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)


def _late(dataset: Dataset) -> Elements[object]:
    """The elements of a pass that starts when the first is wanted."""
    yield from dataset._iterate()

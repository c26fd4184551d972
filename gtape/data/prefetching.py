"""Prefetching: the next elements are computed while the present one is used."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from time import perf_counter
from typing import Any

from gtape.data.dataset import Dataset
from gtape.data.rows import Rows
from gtape.data.workers import Ahead, HandedBack, Pace

#: How many elements are kept ready where the user leaves it open.
_USUAL = 2


class Prefetch(Dataset):
    """The elements, of which a thread keeps up to `size` ready; -1 leaves the number open.

    The thread is started when elements are seen to take their time. Where they take less than
    handing them over would, they are computed as they are asked for, from then on or again.
    """

    def __init__(self, dataset: Any, size: int) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        self._size = size

    def _iterate(self) -> Elements[Any]:
        upstream = self._inputs[0]._iterate()
        return ahead(upstream, _USUAL if self._size < 0 else self._size) if self._size else (
            upstream)

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()

    def _rows(self) -> Rows | None:
        return self._inputs[0]._rows()


def ahead(upstream: Elements[Any], size: int) -> Elements[Any]:
    """The elements of a pass, computed by a thread while they take their time."""
    while True:
        pace = Pace()
        while not pace.slow:
            start = perf_counter()
            try:
                element = next(upstream)
            except StopIteration:
                return
            pace.add(perf_counter() - start)
            yield element
        try:
            yield from Ahead(upstream, size).elements()
            return
        except HandedBack:
            pass

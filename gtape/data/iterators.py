"""Iterators: what `iter(dataset)` gives."""

from __future__ import annotations

from typing import Any

from gtape.core.errors import OutOfRangeError


class Iterator:
    """The base of what `iter(dataset)` gives."""


class OwnedIterator(Iterator):
    """One pass over a dataset."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._elements = dataset._iterate()

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        try:
            return self.__next__()
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    @property
    def element_spec(self) -> Any:
        """The specs of the elements' leaves, in the elements' structure."""
        return self._dataset.element_spec

"""Reading: what the datasets that read files have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator as Elements
from itertools import chain, islice
from typing import Any

import numpy as np

from gtape.core.dtypes import string
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import integer, known
from gtape.data.dataset import Dataset
from gtape.data.rows import Chunk, Rows
from gtape.files.streams import compression

#: Files that are read side by side where the number is left to gtape.
_SIDE_BY_SIDE = 4
#: So many records are passed on at once, at most.
_BLOCK = 256


class FileDataset(Dataset):
    """The records that the files of a list, or of a dataset of their names, hold, one file after
    another.

    A subclass says what one file holds (`_of_file`), and what the elements are, if they are not
    scalars of strings (`_record_spec`). Records are rows whose picks are the records themselves:
    they are shuffled, mapped and batched many at once.
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
                 num_parallel_reads: Any = None, name: str | None = None) -> None:
        given = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(
            _names(filenames))
        named = given.element_spec
        if not isinstance(named, TensorSpec) or named.dtype is not string:
            raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got "
                            f"{named}")
        self._kind = compression(compression_type)
        size = 0 if buffer_size is None else integer(
            buffer_size, f"{type(self).__name__}: buffer_size")
        self._chunk = max(size, 1 << 18)
        reads = 1 if num_parallel_reads is None else integer(
            num_parallel_reads, f"{type(self).__name__}: num_parallel_reads")
        self._side_by_side = _SIDE_BY_SIDE if reads < 0 else max(reads, 1)
        super().__init__(self._record_spec(), given)

    def _record_spec(self) -> Any:
        """The spec of the elements."""
        return TensorSpec([], string)

    def _paths(self) -> Elements[str]:
        for names in self._inputs[0]._iterate():
            for name in np.asarray(names._a, object).reshape(-1):
                yield name.decode("utf-8", "surrogateescape")

    def _of_file(self, path: str) -> Elements[Any]:
        """The records of one file."""
        raise NotImplementedError

    def _records(self) -> Elements[Any]:
        """The records of a new pass."""
        if self._side_by_side == 1:
            return chain.from_iterable(map(self._of_file, self._paths()))
        return self._in_turn(self._paths())

    def _iterate(self) -> Elements[Any]:
        return self._rows().elements()

    def _rows(self) -> Rows:
        return Rows([(0, _itself)], TensorSpec([], string), lambda: _chunks(self._records()), 1,
                    read=True)

    def _in_turn(self, paths: Elements[str]) -> Elements[Any]:
        """A record of each of several files in turn; the next file takes the place of one that
        ends."""
        opened: list[Any] = [self._of_file(p) for p in islice(paths, self._side_by_side)]
        while opened:
            for i, found in enumerate(opened):
                element = next(found, _END)
                while element is _END:
                    path = next(paths, None)
                    if path is None:
                        opened[i] = None
                        break
                    opened[i] = self._of_file(path)
                    element = next(opened[i], _END)
                else:
                    yield element
            opened = [found for found in opened if found is not None]


_END = object()


def _names(filenames: Any) -> Any:
    """The names of files as a vector of strings."""
    if isinstance(filenames, os.PathLike):
        filenames = os.fspath(filenames)
    if isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(f) if isinstance(f, os.PathLike) else f for f in filenames]
        if not filenames:
            filenames = np.empty(0, object)
    found = elements.element_of(filenames if not isinstance(filenames, tuple) else list(filenames))
    if getattr(found, "dtype", None) is not string:
        raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got "
                        f"{getattr(found, 'dtype', type(filenames).__name__)!r} elements.")
    names = known(found, "filenames")
    return names.reshape(-1) if found.ndim else np.array([names], object)


def _itself(pick: np.ndarray) -> np.ndarray:
    return pick


def _chunks(records: Elements[Any]) -> Elements[Chunk]:
    """Records many at once; those before an error come before it."""
    size = 1  # the first comes at once
    while True:
        held: list[Any] = []
        try:
            held.extend(islice(records, size))
        except Exception:
            if held:
                yield _chunk(held)
            raise
        if not held:
            return
        yield _chunk(held)
        size = min(2 * size, _BLOCK)


def _chunk(held: list[Any]) -> Chunk:
    return (np.fromiter(held, object, len(held)),)

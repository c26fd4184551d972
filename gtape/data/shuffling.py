"""Shuffling: elements in random order, by a buffer from which the next one is drawn."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core import errors
from gtape.core.dtypes import int64
from gtape.core.type_specs import TensorSpec
from gtape.data.dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from gtape.data.elements import tensor
from gtape.data.rows import Chunk, Rows, vector
from gtape.data.seeds import Seed

#: How many rows are drawn at a time, at most.
_BLOCK = 1 << 16


class Shuffle(Dataset):
    """The buffer holds the next `buffer_size` elements. The next one is any of these, each as
    likely as the others, and the element that follows takes its place."""

    def __init__(self, dataset: Any, buffer_size: int, seed: Any, renewed: bool) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        if buffer_size == UNKNOWN_CARDINALITY:
            buffer_size = dataset._cardinality()
            if buffer_size < 0:
                raise errors.InvalidArgumentError(
                    "shuffle: buffer_size=tf.data.UNKNOWN_CARDINALITY needs a dataset of known "
                    "length")
            buffer_size = max(1, buffer_size)
        if buffer_size < 1:
            raise errors.InvalidArgumentError(
                f"shuffle: buffer_size must be greater than zero; got {buffer_size}")
        self._size = buffer_size
        self._seed = Seed(seed, renewed)

    def _iterate(self) -> Elements[Any]:
        rows = self._rows()
        if rows is not None:
            return rows.elements()
        return _drawn(self._inputs[0]._iterate(), self._size, self._seed.generator())

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()

    def _rows(self) -> Rows | None:
        rows = self._inputs[0]._rows()
        if rows is None:
            return None
        return rows.reordered(lambda chunks: shuffled(chunks, self._size, self._seed.generator()))


def _drawn(upstream: Elements[Any], size: int, generator: np.random.Generator) -> Elements[Any]:
    buffer: list[Any] = []
    places = _places(generator, size)
    for element in upstream:
        if len(buffer) < size:
            buffer.append(element)
            continue
        at = next(places)
        made, buffer[at] = buffer[at], element
        yield made
    for at in generator.permutation(len(buffer)).tolist():
        yield buffer[at]


def _places(generator: np.random.Generator, size: int) -> Elements[int]:
    while True:
        yield from generator.integers(0, size, 1024).tolist()


def shuffled(chunks: Elements[Chunk], size: int, generator: np.random.Generator) -> Elements[Chunk]:
    """The rows of chunks as a buffer of `size` gives them."""
    buffer: Any = None
    for block in _blocks(chunks, size):
        if buffer is None:
            buffer, block = block[:, :size].copy(), block[:, size:]
        elif buffer.shape[1] < size:
            room = size - buffer.shape[1]
            buffer, block = np.concatenate([buffer, block[:, :room]], 1), block[:, room:]
        if block.shape[1]:
            yield tuple(_exchanged(buffer, block, generator))
    if buffer is not None:
        yield tuple(buffer[:, generator.permutation(buffer.shape[1])])


def _blocks(chunks: Elements[Chunk], size: int) -> Elements[np.ndarray]:
    """Chunks as matrices with a row for each pick: the first of `size` columns, if there are so
    many, the others neither larger than is worth while nor smaller."""
    wanted, held, count = size, [], 0
    for chunk in chunks:
        at, length = 0, len(chunk[0])
        while at < length:
            part = [pick[at:at + wanted - count] for pick in chunk]
            held.append(np.stack([vector(pick) for pick in part]))
            at += len(part[0])
            count += len(part[0])
            if count == wanted:
                yield held[0] if len(held) == 1 else np.concatenate(held, 1)
                wanted, held, count = min(_BLOCK, max(1024, size)), [], 0
    if held:
        yield held[0] if len(held) == 1 else np.concatenate(held, 1)


def _exchanged(buffer: np.ndarray, block: np.ndarray, generator: np.random.Generator,
               ) -> np.ndarray:
    """What comes out of the buffer while the columns of `block` go in, one after the other.

    Of the steps that draw the same place of the buffer, the first gets what the buffer had there,
    and each other one what the one before it put there.
    """
    size, steps = buffer.shape[1], block.shape[1]
    places: Any = generator.integers(
        0, size, steps, np.uint16 if size <= 1 << 16 else np.int64)
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    again = np.empty(steps, bool)
    again[0] = False
    np.equal(sorted_places[1:], sorted_places[:-1], out=again[1:])
    found = buffer[:, sorted_places]
    found[:, again] = block[:, order[:-1][again[1:]]]
    made = np.empty_like(block)
    made[:, order] = found
    last = np.append(~again[1:], True)
    buffer[:, sorted_places[last]] = block[:, order[last]]
    return made


class Random(Dataset):
    """Random numbers without end: int64, as TensorFlow's are, or of another dtype."""

    def __init__(self, seed: Any, renewed: bool) -> None:
        super().__init__(TensorSpec([], int64))
        self._seed = Seed(seed, renewed)

    def _iterate(self) -> Elements[Any]:
        generator = self._seed.generator()
        while True:
            numbers = generator.integers(0, 1 << 32, 256, np.int64)
            yield from map(tensor, numbers)

    def _cardinality(self) -> int:
        return INFINITE_CARDINALITY

"""Choosing: datasets of some of the elements of a dataset, of all of them again, and of all in
random order, by a buffer from which the next one is drawn.

A transformation that draws gets its key when it is made: from its own seed and the global one of
`tf.random.set_seed`, or, without a seed of its own, from how many were made since the global seed
was set. Every pass draws from a generator of its own, so that a pass can be had again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import chain, islice
from typing import Any

import numpy as np

from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.locks import lock
from gtape.core.type_specs import TensorSpec
from gtape.data.base import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, Reordered, Same
from gtape.data.elements import tensor
from gtape.data.rows import Chunk, Elements, Rows, vector
from gtape.data.stacking import merged_specs
from gtape.ops.arguments import as_ints


class _ByCount(Reordered):
    """Elements of which a number says how many, or how often."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count


class Take(_ByCount):
    """The first elements; all for a negative count."""

    def _elements(self) -> Elements[object]:
        upstream = self._inputs[0]._iterate()
        return upstream if self._count < 0 else islice(upstream, self._count)

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        return chunks if self._count < 0 else _first(chunks, self._count)

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        # A negative count takes all, so that the length is that of the input.
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


class Skip(_ByCount):
    """The elements after the first; none for a negative count."""

    def _elements(self) -> Elements[object]:
        # TensorFlow: skip(-1) skips all.
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
        # The lengths of Python's ranges count exactly what islice takes.
        return count if count < 0 else len(range(self._index, count, self._number))


class Repeat(_ByCount):
    """The elements `count` times, each time by a new pass; without end for a negative count."""

    def _elements(self) -> Elements[object]:
        return _again(self._inputs[0]._iterate, self._count)

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        # Nothing repeated without end has no elements: `_again` stops after an empty pass.
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
    """The elements of one dataset, then those of another."""

    def __init__(self, first: Dataset, second: Dataset) -> None:
        super().__init__(
            lambda: merged_specs([first.element_spec, second.element_spec], "concatenate"),
            first, second)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        # The pass over the second starts when the first has ended: a source that draws, opens files
        # or starts a thread does so only when it is needed, as in TensorFlow.
        return chain.from_iterable(dataset._iterate() for dataset in self._inputs)

    def _cardinality(self) -> int:
        counts = [d._cardinality() for d in self._inputs]
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)


#: How many rows are drawn at a time, at most: enough that NumPy's calls cost nothing beside it, and
#: few enough that an element after a large buffer does not wait for all others.
_BLOCK = 1 << 16
#: The stream of `tf.random` whose position counts the transformations without a seed.
_STREAM = -0x64617461
_lock = lock()
_WORD = (1 << 64) - 1


class Seed:
    """What a transformation draws from: `generator()` starts a pass, which draws other numbers
    where `renewed`. A seed is an integer, a tensor of one, a pair as of `tf.random`, or None."""

    def __init__(self, seed: object, renewed: bool = True) -> None:
        from gtape.ops.random.streams import streams  # brings random numbers, which few draw

        self._renewed = renewed
        self._passes = 0
        if seed is not None:
            self._key = [n & _WORD for n in as_ints(seed, "a seed")]
            # A global seed of 0 is another key than none.
            self._key.append(0 if streams.seed is None else 1 + streams.seed)
        elif streams.seed is None:
            self._key = [secrets.randbits(64)]
        else:
            self._key = [*(n & _WORD for n in streams.take(_STREAM, 1)[0]),
                         streams.take(_STREAM, 1)[1]]

    def generator(self) -> np.random.Generator:
        """The generator of the next pass."""
        # Two threads that begin a pass of one dataset at once must not get one number: their orders
        # would be equal.
        with _lock:
            number = self._passes if self._renewed else 0
            self._passes += 1
        # SeedSequence mixes the words, so that the orders of pass 1 and pass 2, or of seeds that
        # follow one another, have nothing in common.
        entropy = np.random.SeedSequence([number, *self._key])
        return np.random.Generator(np.random.PCG64(entropy))


class Shuffle(Reordered, Same):
    """The buffer holds the next `buffer_size` elements. The next one is any of these, each as
    likely as the others, and the element that follows takes its place."""

    def __init__(self, dataset: Any, buffer_size: int, seed: int | None, renewed: bool) -> None:
        super().__init__(dataset)
        if buffer_size == UNKNOWN_CARDINALITY:
            buffer_size = dataset._cardinality()
            if buffer_size < 0:
                raise InvalidArgumentError("shuffle: buffer_size=tf.data.UNKNOWN_CARDINALITY needs "
                                           "a dataset of known length")
            buffer_size = max(1, buffer_size)
        if buffer_size < 1:
            raise InvalidArgumentError(f"shuffle: buffer_size must be greater than zero; got "
                                       f"{buffer_size}")
        self._size = buffer_size
        self._seed = Seed(seed, renewed)

    def _elements(self) -> Elements[object]:
        return _drawn(self._inputs[0]._iterate(), self._size, self._seed.generator())

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        return shuffled(chunks, self._size, self._seed.generator())


def _drawn(upstream: Elements[object], size: int, generator: np.random.Generator) -> Elements[Any]:
    buffer: list[Any] = []
    places = _places(generator, size)
    for element in upstream:
        if len(buffer) < size:
            buffer.append(element)
            continue
        at = next(places)
        yield buffer[at]
        buffer[at] = element
    # What is left when no more comes is as likely in any order.
    for at in generator.permutation(len(buffer)).tolist():
        yield buffer[at]


def _places(generator: np.random.Generator, size: int) -> Elements[int]:
    while True:
        # Many at once: a call for each number would take longer than the rest of the shuffle.
        yield from generator.integers(0, size, 1024).tolist()


def shuffled(chunks: Elements[Chunk], size: int, generator: np.random.Generator) -> Elements[Chunk]:
    """The rows of chunks as a buffer of `size` gives them."""
    buffer: Any = None
    for block in _blocks(chunks, size):
        if buffer is None:
            # A copy, for its columns are exchanged in place, and the block may be a view of an
            # array of the user.
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


def _exchanged(buffer: np.ndarray, block: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """What comes out of the buffer while the columns of `block` go in, one after the other. Of the
    steps that draw the same place of the buffer, the first gets what the buffer had there, and each
    other one what the one before it put there."""
    size, steps = buffer.shape[1], block.shape[1]
    # Of 16 bits NumPy's stable sort is a radix sort, which takes linear time.
    places: Any = generator.integers(0, size, steps, np.uint16 if size <= 1 << 16 else np.int64)
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    # In sorted order the steps that draw one place stand side by side, and stable sorting keeps
    # them in the order in which they were made.
    again = np.empty(steps, bool)
    again[0] = False
    np.equal(sorted_places[1:], sorted_places[:-1], out=again[1:])
    drawn = buffer[:, sorted_places]
    drawn[:, again] = block[:, order[:-1][again[1:]]]
    in_turn = np.empty_like(block)
    in_turn[:, order] = drawn
    # What the last step of each place put there is what stays in the buffer.
    last = np.append(~again[1:], True)
    buffer[:, sorted_places[last]] = block[:, order[last]]
    return in_turn


class Random(Dataset):
    """Random numbers without end: int64, as TensorFlow's are, or of another dtype."""

    def __init__(self, seed: int, renewed: bool) -> None:
        super().__init__(TensorSpec([], int64))
        self._seed = Seed(seed, renewed)

    def _iterate(self) -> Elements[Any]:
        generator = self._seed.generator()
        while True:
            # TensorFlow's dataset gives uint32 as int64. Many at once, as each call of NumPy costs
            # more than a number.
            numbers = generator.integers(0, 1 << 32, 256, np.int64)
            yield from map(tensor, numbers)

    def _cardinality(self) -> int:
        return INFINITE_CARDINALITY

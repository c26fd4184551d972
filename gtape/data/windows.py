"""Windows: elements gathered into datasets, and datasets reduced group by group."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.autograph.convert import do_not_convert
from gtape.core import nest
from gtape.core.annotations import IntsLike
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor
from gtape.data import batching, elements
from gtape.data.arguments import integer, specs_of
from gtape.data.base import Dataset, ReadyElements
from gtape.data.calls import Call
from gtape.data.failures import failed
from gtape.data.iterators import SpecOfElements
from gtape.data.stacking import loosened
from gtape.ops.arguments import as_function, as_items


class DatasetSpec(SpecOfElements):
    """The spec of a dataset that is an element, or a leaf of one.

    Args:
        element_spec: of its elements.
    """

    def __init__(self, element_spec: Any, dataset_shape: IntsLike = ()) -> None:
        super().__init__(specs_of(element_spec, "DatasetSpec: element_spec"))
        self.dataset_shape = dataset_shape

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"


class Window(Dataset):
    """Datasets of `size` elements each, `stride` apart, the first of each `shift` after that of
    the one before."""

    def __init__(self, dataset: Any, size: int, shift: int, stride: int, drop: bool) -> None:
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value < 1:
                raise InvalidArgumentError(f"window: `{name}` must be greater than zero; got "
                                           f"{value}")
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop
        super().__init__(lambda: nest.map_structure(DatasetSpec, dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        """One dataset for each leaf of the elements, in their structure."""
        spec = self._inputs[0].element_spec
        upstream = self._inputs[0]._iterate()
        held: list[Any] = []
        span = (self._size - 1) * self._stride + 1
        ended = False
        while True:
            while len(held) < span and not ended:
                element = next(upstream, upstream)
                ended = element is upstream
                if not ended:
                    held.append(element)
            items = held[:span:self._stride]
            if not items or (self._drop and len(held) < span):
                return
            yield _datasets(items, spec)
            # Of what is shifted over and not held, nothing is kept: it is asked for and let go.
            gone = min(self._shift, len(held))
            del held[:gone]
            for _ in range(self._shift - gone):
                if next(upstream, upstream) is upstream:
                    ended = True
                    break

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if count < 0:
            return count
        if not self._drop:
            return -(-count // self._shift)
        span = (self._size - 1) * self._stride + 1
        return 0 if count < span else (count - span) // self._shift + 1


def _datasets(items: list[object], spec: object) -> Any:
    if not nest.is_nested(spec):
        return ReadyElements(items, spec)
    columns = zip(*[elements.flatten(item) for item in items])
    return nest.pack_sequence_as(spec, [
        ReadyElements(list(column), leaf) for column, leaf in zip(columns, nest.flatten(spec))])


class GroupByWindow(Dataset):
    """The elements of what a function makes of groups: elements with the same key, as many as the
    window of that key has, as a dataset."""

    def __init__(self, dataset: Any, key: Callable[..., object], reduce: Callable[..., object],
                 size: Callable[[Any], int]) -> None:
        super().__init__(lambda: self._found_spec(), dataset)
        self._told_by_elements = True
        self._key = Call(key, dataset._known_spec, "group_by_window: key_func")
        self._reduce = as_function(reduce, "group_by_window: reduce_func")
        self._size = size

    def _found_spec(self) -> Any:
        spec = self._inputs[0].element_spec
        for element in self._inputs[0]._iterate():
            key = self._key_of(element, 0)
            return loosened(self._reduced(key, [element], spec).element_spec)
        raise InvalidArgumentError("element_spec: group_by_window has no group that would tell it")

    def _iterate(self) -> Elements[Any]:
        spec = self._inputs[0].element_spec
        groups: dict[int, list[Any]] = {}
        sizes: dict[int, int] = {}
        for number, element in enumerate(self._inputs[0]._iterate()):
            key = self._key_of(element, number)
            at = int(key._a)
            if at not in groups:
                groups[at], sizes[at] = [], self._size(key)
                if sizes[at] < 1:
                    raise InvalidArgumentError(f"group_by_window: the size of a window must be "
                                               f"greater than zero; got {sizes[at]} for key {at}")
            groups[at].append(element)
            if len(groups[at]) == sizes[at]:
                yield from self._reduced(key, groups.pop(at), spec)._iterate()
        for at, items in groups.items():
            yield from self._reduced(_key(at), items, spec)._iterate()

    def _key_of(self, element: Any, number: int) -> Any:
        try:
            key = self._key(element)
            if not isinstance(key, EagerTensor) or key.dtype is not int64 or key.ndim:
                got = key.spec if isinstance(key, EagerTensor) else shown(key)
                raise ValueError(f"`key_func` must return a single tf.int64 tensor; got {got}. "
                                 f"Write tf.cast(key, tf.int64)")
            return key
        except Exception as error:
            raise failed(error, "group_by_window", number) from error

    def _reduced(self, key: object, items: list[object], spec: object) -> Any:
        reduced = self._reduce(key, ReadyElements(items, spec))
        if not isinstance(reduced, Dataset):
            raise TypeError(f"group_by_window: `reduce_func` must return a single dataset; got "
                            f"{type(reduced).__name__}")
        return reduced


def _key(at: int) -> Any:
    return elements.tensor(np.asarray(at, np.int64))


def bucketed(dataset: Any, length: Callable[..., object], boundaries: object, sizes: object,
             shapes: object, values: object, pad_to_boundary: bool, no_padding: bool,
             drop_remainder: bool) -> Any:
    """Batches of elements of like lengths: see `Dataset.bucket_by_sequence_length`.

    Raises:
        ValueError: there is not one batch size more than boundaries.
    """
    bounds, counts = (
        [integer(n, f"bucket_by_sequence_length: a number of {what}")
         for n in as_items(given, f"bucket_by_sequence_length: {what}")]
        for given, what in ((boundaries, "bucket_boundaries"), (sizes, "bucket_batch_sizes")))
    if len(counts) != len(bounds) + 1:
        raise ValueError(f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                         f"`len(bucket_batch_sizes)={len(counts)}` and "
                         f"`len(bucket_boundaries)={len(bounds)}`.")
    length_of = Call(length, dataset._known_spec, "bucket_by_sequence_length: element_length_func")

    def key(*element: Any) -> Any:
        size = integer(length_of(element if len(element) > 1 else element[0]),
                       "bucket_by_sequence_length: what element_length_func returns")
        return _key(int(np.searchsorted(bounds, size, "right")))

    def batches(at: Any, grouped: Any) -> Any:
        bucket = int(at)
        if no_padding:
            return grouped.batch(counts[bucket], drop_remainder=drop_remainder)
        wanted = shapes
        if pad_to_boundary:
            if bucket == len(bounds):
                raise InvalidArgumentError(
                    "When pad_to_bucket_boundary=True, elements must have length < "
                    "max(bucket_boundaries).")
            wanted = batching.filled(shapes, grouped.element_spec, bounds[bucket] - 1)
        return grouped.padded_batch(counts[bucket], wanted, values, drop_remainder)

    return GroupByWindow(dataset, do_not_convert(key), batches, lambda at: counts[int(at)])


class Nested(Dataset):
    """The dataset whose one element is a dataset."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: DatasetSpec(dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        yield self._inputs[0]

    def _cardinality(self) -> int:
        return 1

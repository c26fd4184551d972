"""Transforming: the methods of `tf.data.Dataset` that make a dataset of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.data.arguments import (
    count_or_auto,
    dataset_of,
    integer,
    integer_or_none,
)
from gtape.data.gathering import Gathering
from gtape.ops.arguments import as_function


class Transforming(Gathering):
    """What transforms a dataset; a base of `Dataset`."""

    # ------------------------------------------------------------------ functions of elements

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None,
            deterministic: bool | None = None, synchronous: bool | None = None,
            use_unbounded_threadpool: bool = False, name: str | None = None) -> Any:
        """map_func(element) for every element; the items of a tuple are its arguments.

        A function that can be traced is, and its Python code then runs no more; another runs as
        it is, with tensors.

        Args:
            num_parallel_calls: how many threads run it, where it takes long; AUTOTUNE: as many as
                there are processors.
            deterministic: False lets results come as they are done.

        Raises:
            InvalidArgumentError: no number of threads.
            TypeError: `map_func` is not callable. Otherwise what it raises where it is traced.
        """
        from gtape.data.mapping import Map

        threads = None if num_parallel_calls is None else count_or_auto(
            num_parallel_calls, "num_parallel_calls", 1)
        return Map(self, map_func, threads, deterministic)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements for which `predicate` gives True: a scalar bool.

        Raises:
            ValueError: it gives something else.
        """
        from gtape.data.mapping import Filter

        return Filter(self, predicate)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements before the first for which `predicate` gives False."""
        from gtape.data.mapping import TakeWhile

        return TakeWhile(self, predicate)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None,
             ) -> Any:
        """The results of (state, element) -> (state, result), from an initial state on."""
        from gtape.data.mapping import Scan

        return Scan(self, initial_state, scan_func)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None,
               ) -> Any:
        """The last state of (state, element) -> state, from an initial one on.

        Raises:
            TypeError: a state has another structure or other dtypes than the initial one.
        """
        from gtape.data.mapping import reduced

        return reduced(self, initial_state, reduce_func)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of elements, one after the other."""
        from gtape.data.combining import Interleave

        return Interleave(self, map_func, 1, 1, "flat_map")

    def interleave(self, map_func: Callable[..., Any], cycle_length: Any = None,
                   block_length: Any = None, num_parallel_calls: Any = None,
                   deterministic: bool | None = None, name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of elements, of several in turn.

        Args:
            cycle_length: of how many; as many as there are processors without it.
            block_length: how many elements of each at a time; 1 without it.
            num_parallel_calls: accepted and without effect.

        Raises:
            InvalidArgumentError: a length is not positive.
        """
        import os

        from gtape.data.combining import Interleave

        cycle = integer_or_none(cycle_length, "cycle_length")
        block = integer_or_none(block_length, "block_length")
        if cycle is None or cycle == -1:
            cycle = os.cpu_count() or 1
        return Interleave(self, map_func, cycle, 1 if block is None else block, "interleave")

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """transformation_func(self), a dataset.

        Raises:
            TypeError: it gives something else.
        """
        made = as_function(transformation_func, "apply: transformation_func")(self)
        return dataset_of(made, "apply: what `transformation_func` returns")

    # ------------------------------------------------------------------ which of the elements

    def shuffle(self, buffer_size: Any, seed: Any = None,
                reshuffle_each_iteration: bool | None = None, name: str | None = None) -> Any:
        """The elements in random order: each is drawn from a buffer of the next `buffer_size`.

        Args:
            buffer_size: as many as there are elements for an order that is entirely random;
                tf.data.UNKNOWN_CARDINALITY means that.
            seed: the order is then the same in every program with this and the global seed.
            reshuffle_each_iteration: every pass has another order, by default.

        Raises:
            InvalidArgumentError: the buffer is empty.
        """
        from gtape.data.shuffling import Shuffle

        return Shuffle(self, integer(buffer_size, "buffer_size"), seed,
                       reshuffle_each_iteration is not False)

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """The elements `count` times; without end for None or -1."""
        from gtape.data.choosing import Repeat

        found = integer_or_none(count, "repeat: count")
        return Repeat(self, -1 if found is None else found)

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first `count` elements; all for -1."""
        from gtape.data.choosing import Take

        return Take(self, integer(count, "take: count"))

    def skip(self, count: Any, name: str | None = None) -> Any:
        """The elements after the first `count`; none for -1."""
        from gtape.data.choosing import Skip

        return Skip(self, integer(count, "skip: count"))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Every num_shards-th element, from number `index` on.

        Raises:
            InvalidArgumentError: index is not in [0, num_shards).
        """
        from gtape.data.choosing import Shard

        return Shard(self, integer(num_shards, "num_shards"), integer(index, "index"))

    def concatenate(self, dataset: Any, name: str | None = None) -> Any:
        """The elements, then those of `dataset`.

        Raises:
            TypeError: they differ in structure or dtype.
        """
        from gtape.data.choosing import Concatenate

        return Concatenate(self, dataset_of(dataset, "concatenate: dataset"))

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """(number, element), the numbers int64 from `start` on."""
        from gtape.data.dataset import Dataset

        first = integer(start, "enumerate: start")
        return Dataset.zip((Dataset.range(first, 2 ** 63 - 1), self))

    def unique(self, name: str | None = None) -> Any:
        """The elements without those that came before."""
        from gtape.data.mapping import UniqueElements

        return UniqueElements(self)

    def rejection_resample(self, class_func: Callable[..., Any], target_dist: Any,
                           initial_dist: Any = None, seed: Any = None, name: str | None = None,
                           ) -> Any:
        """(class, element), some elements left out, so that the classes that `class_func` gives
        come in the proportions of `target_dist`.

        Args:
            initial_dist: their proportions now; estimated from what came before without it.
        """
        from gtape.data.resampling import Resampled

        return Resampled(self, class_func, target_dist, initial_dist, seed)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements without those whose computation raises."""
        from gtape.data.mapping import IgnoreErrors

        return IgnoreErrors(self, log_warning)

    # ------------------------------------------------------------------ how they are had

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The elements, computed ahead by a thread where they take long: `buffer_size` of them."""
        from gtape.data.prefetching import Prefetch

        return Prefetch(self, count_or_auto(buffer_size, "prefetch: buffer_size"))

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """The elements, kept by the first whole pass: in memory, or in the file `filename`.npz."""
        from gtape.data.caching import Cache, FileCache
        from gtape.files.paths import local

        path = local(filename)
        return FileCache(self, path) if path else Cache(self)

    def snapshot(self, path: Any, compression: Any = "AUTO", reader_func: Any = None,
                 shard_func: Any = None, name: str | None = None) -> Any:
        """The elements, which the first whole pass writes to the folder `path`, and others read.

        Args:
            compression, shard_func: accepted and without effect.
            reader_func: of a dataset of datasets of the elements, for a dataset of them.
        """
        import os

        from gtape.data.caching import FileCache
        from gtape.data.windows import Nested
        from gtape.files.paths import local

        kept = FileCache(self, os.path.join(local(path), "snapshot"))
        if reader_func is None:
            return kept
        made = as_function(reader_func, "snapshot: reader_func")(Nested(kept))
        return dataset_of(made, "snapshot: what reader_func returns")

    def save(self, path: Any, compression: Any = None, shard_func: Any = None,
             checkpoint_args: Any = None) -> None:
        """Write the elements to the folder `path`, from which `tf.data.Dataset.load` reads them.

        Args:
            compression: "GZIP", "ZLIB", or "" or None for none.
            shard_func: gives the number of an element's shard.
            checkpoint_args: accepted and without effect.

        Raises:
            UnimplementedError: elements with other leaves than tensors.
        """
        from gtape.data.saved import save

        save(self, path, compression, shard_func)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        """The same elements; what `options` sets, and what was set before."""
        from gtape.data.options import WithOptions

        return WithOptions(self, options)

    def options(self) -> Any:
        """The options of this dataset and of those that it is made from."""
        from gtape.data.options import options_of

        return options_of(self)

    def cardinality(self, name: str | None = None) -> Any:
        """The number of elements, an int64 scalar: tf.data.INFINITE_CARDINALITY without end,
        tf.data.UNKNOWN_CARDINALITY where it is not known without a pass."""
        return convert(self._counted(), int64)  # type: ignore[attr-defined]

    def as_numpy_iterator(self) -> Any:
        """An iterator that gives NumPy arrays in the place of tensors."""
        from gtape.data.iterators import NumpyIterator

        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: there is none, or more than one.
        """
        found = iter(self)  # type: ignore[call-overload]
        try:
            element = next(found)
        except StopIteration:
            raise InvalidArgumentError("Dataset was empty.") from None
        if next(found, None) is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
        return element

"""The public methods of `tf.data.Dataset`, which every dataset is given here.

The datasets that they make stand below this module, on `base.Dataset`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from gtape.core.annotations import DTypeLike
from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.type_specs import TensorSpec
from gtape.data import arguments, base, batching, choosing, combining, mapping, sources
from gtape.data.arguments import dataset_of, flag, integer
from gtape.data.caching import Cache, FileCache
from gtape.data.iterators import NumpyIterator, OwnedIterator, refuse
from gtape.data.options import WithOptions, options_of
from gtape.data.prefetching import Prefetch
from gtape.files.paths import local
from gtape.ops.arguments import as_function, as_ints, as_items


class Methods(base.Core):
    """The public methods of `base.Dataset`, which is this class to type checkers."""

    # ------------------------------------------------------------------ making

    @staticmethod
    def from_tensors(tensors: object, name: str | None = None) -> Any:
        """The dataset of one element, `tensors`: a tensor, or tuples and dicts of tensors. Raises
        ValueError, TypeError: a leaf is nothing that a tensor can be made of."""
        return sources.OneElement(tensors)

    @staticmethod
    def from_tensor_slices(tensors: object, name: str | None = None) -> Any:
        """The rows tensors[0], tensors[1], ... of a tensor, or of a nest of them. Arrays are
        copied, but for `np.memmap`, of which rows are read as they are wanted. Raises ValueError:
        the first axes are not equally long, or there is none."""
        return sources.Slices(tensors)

    @staticmethod
    def from_generator(generator: Callable[..., object], output_types: object = None,
                       output_shapes: object = None, args: object = None,
                       output_signature: object = None, name: str | None = None) -> Any:
        """What `generator(*args)`, called for every pass, yields.

        Args:
            output_signature: the specs of what it yields; or by the older way
            output_types: the dtypes, and
            output_shapes: the shapes.
            args: tensors that the generator gets as arguments, as NumPy arrays.

        Raises:
            TypeError: the generator is not callable, or nothing says what it yields.
            InvalidArgumentError: in a pass: what it yields does not fit, or it raises TypeError or
                ValueError; other exceptions become UnknownError.
        """
        spec = sources.spec_of_arguments(output_signature, output_types, output_shapes)
        given = () if args is None else tuple(
            [arguments.known(convert(arg), "from_generator: args")
             for arg in as_items(args, "from_generator: args")])
        return sources.Generated(generator, spec, given)

    @staticmethod
    def range(*args: object, output_type: Any = None, name: str | None = None) -> Any:
        """range(stop), range(start, stop) or range(start, stop, step): scalars of int64, or of
        `output_type`. Raises InvalidArgumentError: the step is zero. TypeError: an argument is no
        integer."""
        return sources.Range(args, output_type)

    @staticmethod
    def counter(start: object = 0, step: object = 1, dtype: DTypeLike | None = None,
                name: str | None = None) -> Any:
        """start, start + step, ... without end: scalars of int64, or of `dtype`."""
        return sources.Counter(start, step, dtype)

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None,
               name: str | None = None) -> Any:
        """Random int64 numbers of [0, 2^32) without end; other ones in every pass where
        `rerandomize_each_iteration` is true."""
        return choosing.Random(seed, flag(rerandomize_each_iteration, "rerandomize_each_iteration"))

    @staticmethod
    def zip(*args: object, datasets: object = None, name: str | None = None) -> Any:
        """Elements (an element of each dataset), as many as the shortest has; of one nest of
        datasets, with its structure. Raises TypeError: an argument is no dataset."""
        if datasets is not None:
            args = (*args, datasets)
        return combining.Zip(args if len(args) != 1 else args[0])

    @staticmethod
    def choose_from_datasets(datasets: object, choice_dataset: object,
                             stop_on_empty_dataset: bool = True) -> Any:
        """For each number of `choice_dataset` the next element of datasets[number].
        `stop_on_empty_dataset`: the end comes with that of a chosen dataset; False: such a choice
        is passed over. Raises TypeError: the elements of the datasets differ in structure or dtype,
        or a choice is no int64 scalar. ValueError: no datasets."""
        choosable = arguments.datasets_of(datasets, "choose_from_datasets")
        choices = dataset_of(choice_dataset, "choose_from_datasets: choice_dataset")
        if choices.element_spec != TensorSpec([], int64):
            raise TypeError(f"Invalid `choice_dataset`. Elements of `choice_dataset` must be "
                            f"scalar `tf.int64` tensors but are {choices.element_spec}.")
        return combining.Choose(choosable, choices,
                                flag(stop_on_empty_dataset, "stop_on_empty_dataset"))

    @staticmethod
    def sample_from_datasets(datasets: object, weights: object = None, seed: Any = None,
                             stop_on_empty_dataset: bool = False,
                             rerandomize_each_iteration: bool | None = None) -> Any:
        """The next element of a dataset that is drawn at random, again and again.

        Args:
            weights: how likely each dataset is, a vector or a dataset of vectors; equally without.
            stop_on_empty_dataset: the end comes with that of a drawn dataset; False: it is drawn
                no more.
            rerandomize_each_iteration: every pass draws anew; by default none does with a seed.

        Raises:
            TypeError: the elements differ in structure or dtype. ValueError: the weights do not
            fit the datasets.
        """
        drawn = arguments.datasets_of(datasets, "sample_from_datasets")
        return combining.Sample(drawn, combining.weights_of(drawn, weights), seed,
                                flag(stop_on_empty_dataset, "stop_on_empty_dataset"),
                                seed is None or flag(rerandomize_each_iteration,
                                "rerandomize_each_iteration"))

    @staticmethod
    def load(path: object, element_spec: object = None, compression: object = None,
             reader_func: Any = None, wait: bool = False) -> Any:
        """The dataset that `save` wrote to the folder `path`.

        Args:
            element_spec: of the elements; what the folder says by default.
            compression: accepted; the folder says it.
            reader_func: makes one dataset of a dataset of the shards' datasets; without it one
                shard follows the other.
            wait: accepted; a dataset is there when `save` is done.

        Raises:
            NotFoundError: no dataset was saved there.
            DataLossError: what is there is damaged; in a pass it names file and element.
            InvalidArgumentError: the elements are others than `element_spec` says.
        """
        from gtape.data import saved  # brings protocol buffers

        return saved.load(path, element_spec, compression, reader_func)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: object = None,
                   name: str | None = None) -> Any:
        """The names of the files that match a glob pattern, or one of several: strings, in random
        order, or sorted where `shuffle` is False. Raises InvalidArgumentError: no file matches."""
        return sources.listed(file_pattern, shuffle, seed)

    # ------------------------------------------------------------------ functions of elements

    def map(self, map_func: Callable[..., object], num_parallel_calls: Any = None,
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
            InvalidArgumentError: no number of threads. TypeError: `map_func` is not callable.
            Otherwise what it raises where it is traced.
        """
        # None runs it in the pass itself; TensorFlow's AUTOTUNE, -1, is a number like any other
        # here: `in_threads` knows it.
        threads = None if num_parallel_calls is None else arguments.count_or_auto(
            num_parallel_calls, "num_parallel_calls", 1)
        return mapping.Map(self, map_func, threads, deterministic)

    def filter(self, predicate: Callable[..., object], name: str | None = None) -> Any:
        """The elements for which `predicate` gives True: a scalar bool. Raises ValueError: it gives
        something else."""
        return mapping.Filter(self, predicate)

    def take_while(self, predicate: Callable[..., object], name: str | None = None) -> Any:
        """The elements before the first for which `predicate` gives False."""
        return mapping.TakeWhile(self, predicate)

    def scan(self, initial_state: object, scan_func: Callable[..., object], name: str | None = None,
             ) -> Any:
        """The results of (state, element) -> (state, result), from an initial state on."""
        return mapping.Scan(self, initial_state, scan_func)

    def reduce(
            self, initial_state: Any, reduce_func: Callable[..., object], name: str | None = None,
    ) -> Any:
        """The last state of (state, element) -> state, from an initial one on. Raises TypeError: a
        state has another structure or other dtypes than the initial one."""
        return mapping.reduced(self, initial_state, reduce_func)

    def flat_map(self, map_func: Callable[..., object], name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of elements, one after the other."""
        return combining.Interleave(self, map_func, 1, 1, "flat_map")

    def interleave(self, map_func: Callable[..., object], cycle_length: Any = None,
                   block_length: Any = None, num_parallel_calls: object = None,
                   deterministic: bool | None = None, name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of elements, of several in turn.

        Args:
            cycle_length: of how many; as many as there are processors without it.
            block_length: how many elements of each at a time; 1 without it.
            num_parallel_calls: accepted and without effect.

        Raises:
            InvalidArgumentError: a length is not positive.
        """
        cycle = arguments.integer_or_none(cycle_length, "cycle_length")
        block = arguments.integer_or_none(block_length, "block_length")
        # As TensorFlow does where it has no better number.
        if cycle is None or cycle == -1:
            cycle = os.cpu_count() or 1
        return combining.Interleave(self, map_func, cycle, 1 if block is None else block,
                                    "interleave")

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """transformation_func(self), a dataset. Raises TypeError: it gives something else."""
        return dataset_of(as_function(transformation_func, "apply: transformation_func")(self),
                          "apply: what `transformation_func` returns")

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
        return choosing.Shuffle(self, integer(buffer_size, "buffer_size"), seed,
                                reshuffle_each_iteration is not False)

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """The elements `count` times; without end for None or -1."""
        return choosing.Repeat(self, -1 if count is None else integer(count, "repeat: count"))

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first `count` elements; all for -1."""
        return choosing.Take(self, integer(count, "take: count"))

    def skip(self, count: Any, name: str | None = None) -> Any:
        """The elements after the first `count`; none for -1."""
        return choosing.Skip(self, integer(count, "skip: count"))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Every num_shards-th element, from number `index` on. Raises InvalidArgumentError: index
        is not in [0, num_shards)."""
        return choosing.Shard(self, integer(num_shards, "num_shards"), integer(index, "index"))

    def concatenate(self, dataset: object, name: str | None = None) -> Any:
        """The elements, then those of `dataset`. Raises TypeError: they differ in structure or
        dtype."""
        return choosing.Concatenate(self, dataset_of(dataset, "concatenate: dataset"))

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """(number, element), the numbers int64 from `start` on."""
        # Rows beside rows: where the elements are rows of arrays, their numbers are too, and
        # neither is computed one by one.
        first = integer(start, "enumerate: start")
        return combining.Zip((sources.Range((first, 2 ** 63 - 1), None), self))

    def unique(self, name: str | None = None) -> Any:
        """The elements without those that came before."""
        return mapping.UniqueElements(self)

    def rejection_resample(self, class_func: Callable[..., object], target_dist: Any,
                           initial_dist: Any = None, seed: Any = None, name: str | None = None,
                           ) -> Any:
        """(class, element), some elements left out, so that the classes that `class_func` gives
        come in the proportions of `target_dist`. Those of now are `initial_dist`, or estimated
        from what came before."""
        return mapping.Resampled(self, class_func, target_dist, initial_dist, seed)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements without those whose computation raises."""
        return mapping.IgnoreErrors(self, log_warning)

    # ------------------------------------------------------------------ how they are had

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The elements, computed ahead by a thread where they take long: `buffer_size` of them."""
        return Prefetch(self, arguments.count_or_auto(buffer_size, "prefetch: buffer_size"))

    def cache(self, filename: object = "", name: str | None = None) -> Any:
        """The elements, kept by the first whole pass: in memory, or in the file `filename`.npz."""
        path = local(filename)
        return FileCache(self, path) if path else Cache(self)

    def snapshot(self, path: object, compression: object = "AUTO", reader_func: Any = None,
                 shard_func: object = None, name: str | None = None) -> Any:
        """The elements, which the first whole pass writes to the folder `path`, and others read;
        `reader_func` makes a dataset of them of a dataset of their datasets. `compression` and
        `shard_func` are accepted and without effect."""
        # The first pass decides: whoever finds the file reads it, and nothing is written again when
        # the pipeline changes, for which TensorFlow compares graphs.
        kept = FileCache(self, os.path.join(local(path), "snapshot"))
        if reader_func is None:
            return kept
        return dataset_of(as_function(reader_func, "snapshot: reader_func")(batching.Nested(kept)),
                          "snapshot: what reader_func returns")

    def save(self, path: object, compression: Any = None, shard_func: Any = None,
             checkpoint_args: object = None) -> None:
        """Write the elements to the folder `path`, from which `tf.data.Dataset.load` reads them.

        Args:
            compression: "GZIP", "ZLIB", or "" or None for none.
            shard_func: gives the number of an element's shard.
            checkpoint_args: accepted and without effect.

        Raises:
            UnimplementedError: elements with other leaves than tensors.
            InvalidArgumentError: another compression; a shard_func that gives no number.
        """
        from gtape.data import saved

        saved.save(self, path, compression, shard_func)

    def with_options(self, options: Any, name: str | None = None) -> Any:
        """The same elements; what `options` sets, and what was set before."""
        return WithOptions(self, options)

    def options(self) -> Any:
        """The options of this dataset and of those that it is made from."""
        return options_of(self)

    def cardinality(self, name: str | None = None) -> Any:
        """The number of elements, an int64 scalar: tf.data.INFINITE_CARDINALITY without end,
        tf.data.UNKNOWN_CARDINALITY where it is not known without a pass."""
        return convert(self._counted(), int64)

    def as_numpy_iterator(self) -> Any:
        """An iterator that gives NumPy arrays in the place of tensors."""
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element. Raises InvalidArgumentError: there is none, or more than one."""
        # Two, so that a second one is noticed, and no more: there may be no end.
        elements = list(islice(self, 2))
        if len(elements) != 1:
            raise InvalidArgumentError("Dataset had more than one element." if elements else
                                       "Dataset was empty.")
        return elements[0]

    def __iter__(self) -> OwnedIterator:
        refuse("a loop over a dataset")
        return OwnedIterator(self)

    # ------------------------------------------------------------------ one element of several

    def batch(self, batch_size: Any, drop_remainder: bool = False,
              num_parallel_calls: object = None, deterministic: bool | None = None,
              name: str | None = None) -> Any:
        """`batch_size` elements as one, along a new first axis; the last batch may be smaller, but
        for `drop_remainder`, which leaves it out; the other arguments are without effect. Raises
        InvalidArgumentError: batch_size is not positive; in a pass: shapes differ."""
        return batching.Batch(self, integer(batch_size, "batch_size"),
                              flag(drop_remainder, "drop_remainder"))

    def padded_batch(self, batch_size: Any, padded_shapes: Any = None,
                     padding_values: object = None, drop_remainder: bool = False,
                     name: str | None = None) -> Any:
        """Batches of elements of different lengths, padded at their ends.

        Args:
            padded_shapes: the lengths to pad to, for every leaf; None for a length: the longest of
                the batch; without it that holds for all lengths that are not known.
            padding_values: what to pad with, for every leaf or one for all; 0 and "" without it.

        Raises:
            ValueError, TypeError: these do not fit the elements.
            InvalidArgumentError: in a pass: an element is longer than it may be.
        """
        return batching.PaddedBatch(
            self, integer(batch_size, "batch_size"), padded_shapes, padding_values,
            flag(drop_remainder, "drop_remainder"))

    def ragged_batch(self, batch_size: Any, drop_remainder: bool = False,
                     row_splits_dtype: Any = None, name: str | None = None) -> Any:
        """Batches of elements of different first lengths, as RaggedTensors with row splits of
        tf.int64 or tf.int32; leaves whose shapes are known are batched as by `batch`. Raises
        ValueError: another dtype; InvalidArgumentError: in a pass: other lengths differ."""
        return batching.RaggedBatch(self, integer(batch_size, "batch_size"),
                                    flag(drop_remainder, "drop_remainder"),
                                    int64 if row_splits_dtype is None else row_splits_dtype)

    def unbatch(self, name: str | None = None) -> Any:
        """The rows of the elements, one after the other. Raises ValueError: a leaf is a scalar."""
        return batching.Unbatch(self)

    def rebatch(self, batch_size: object, drop_remainder: bool = False, name: str | None = None,
                ) -> Any:
        """`unbatch().batch(batch_size)`; for a vector of sizes batches of each in turn."""
        sizes = [integer(n, "batch_size") for n in as_ints(batch_size, "batch_size")]
        return batching.Rebatch(self, sizes, flag(drop_remainder, "drop_remainder"))

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
               name: str | None = None) -> Any:
        """Datasets of `size` elements, each `stride` after the one before; the first of each
        dataset is `shift` (without it `size`) after that of the dataset before. Raises
        InvalidArgumentError: a number is not positive."""
        count = integer(size, "window: size")
        return batching.Window(
            self, count, count if shift is None else integer(shift, "window: shift"),
            integer(stride, "window: stride"), flag(drop_remainder, "drop_remainder"))

    def group_by_window(self, key_func: Callable[..., object], reduce_func: Callable[..., object],
                        window_size: Any = None, window_size_func: Any = None,
                        name: str | None = None) -> Any:
        """The elements of reduce_func(key, a dataset of elements with that key).

        Args:
            key_func: of an element, an int64 scalar.
            window_size: how many elements reduce_func gets; or by
            window_size_func: of the key.

        Raises:
            ValueError: both or neither of them is given.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("Either the `window_size` argument or the `window_size_func` argument "
                             "must be specified.")
        if window_size is not None:
            fixed = integer(window_size, "window_size")
            return batching.GroupByWindow(self, key_func, reduce_func, lambda key: fixed)
        size = as_function(window_size_func, "group_by_window: window_size_func")
        return batching.GroupByWindow(self, key_func, reduce_func, lambda key: integer(
            size(key), "group_by_window: what window_size_func gives"))

    def bucket_by_sequence_length(
            self, element_length_func: Callable[..., object], bucket_boundaries: object,
            bucket_batch_sizes: object, padded_shapes: object = None, padding_values: object = None,
            pad_to_bucket_boundary: bool = False, no_padding: bool = False,
            drop_remainder: bool = False, name: str | None = None) -> Any:
        """Padded batches of elements of like lengths.

        Args:
            element_length_func: the length of an element.
            bucket_boundaries: where one bucket of lengths ends, and the next begins.
            bucket_batch_sizes: the size of the batches of each: one more than boundaries.
            pad_to_bucket_boundary: pad to the longest length of a bucket, not of a batch.
            no_padding: batch without padding: for elements of one length, or sparse.

        Raises:
            ValueError: the numbers of boundaries and sizes do not go together.
        """
        return batching.bucketed(self, element_length_func, bucket_boundaries, bucket_batch_sizes,
                                 padded_shapes, padding_values, pad_to_bucket_boundary, no_padding,
                                 drop_remainder)


if TYPE_CHECKING:
    Dataset = Methods
else:
    Dataset = base.Dataset
    for _name, _method in vars(Methods).items():
        # Python's own entries, such as __module__ and __dict__, stay those of the base.
        if _name == "__iter__" or not _name.startswith("__"):
            setattr(Dataset, _name, _method)

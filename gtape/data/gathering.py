"""Gathering: the methods of `tf.data.Dataset` that make one element of several, and the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core.dtypes import int64
from gtape.data.arguments import flag, integer
from gtape.ops.arguments import as_function, as_ints


class Gathering:
    """What makes batches, windows and groups; a base of `Dataset`."""

    def batch(self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
              deterministic: bool | None = None, name: str | None = None) -> Any:
        """`batch_size` elements as one, along a new first axis; the last batch may be smaller.

        Args:
            drop_remainder: it may not, and is left out.
            num_parallel_calls: accepted and without effect.

        Raises:
            InvalidArgumentError: batch_size is not positive; in a pass: shapes differ.
        """
        from gtape.data.batching import Batch

        return Batch(self, integer(batch_size, "batch_size"), _dropped(drop_remainder))

    def padded_batch(self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None,
                     drop_remainder: bool = False, name: str | None = None) -> Any:
        """Batches of elements of different lengths, padded at their ends.

        Args:
            padded_shapes: the lengths to pad to, for every leaf; None for a length: the longest of
                the batch; without it that holds for all lengths that are not known.
            padding_values: what to pad with, for every leaf or one for all; 0 and "" without it.

        Raises:
            ValueError, TypeError: these do not fit the elements.
            InvalidArgumentError: in a pass: an element is longer than it may be.
        """
        from gtape.data.padding import PaddedBatch

        return PaddedBatch(self, integer(batch_size, "batch_size"), padded_shapes, padding_values,
                           _dropped(drop_remainder))

    def ragged_batch(self, batch_size: Any, drop_remainder: bool = False,
                     row_splits_dtype: Any = None, name: str | None = None) -> Any:
        """Batches of elements of different first lengths, as RaggedTensors.

        Leaves whose shapes are known are batched as by `batch`.

        Args:
            row_splits_dtype: tf.int64, or tf.int32.

        Raises:
            ValueError: another row_splits_dtype.
            InvalidArgumentError: in a pass: other lengths differ.
        """
        from gtape.data.batching import RaggedBatch
        from gtape.ops.ragged.partition import splits_dtype

        dtype = splits_dtype(int64 if row_splits_dtype is None else row_splits_dtype)
        return RaggedBatch(self, integer(batch_size, "batch_size"), _dropped(drop_remainder), dtype)

    def unbatch(self, name: str | None = None) -> Any:
        """The rows of the elements, one after the other.

        Raises:
            ValueError: a leaf is a scalar.
        """
        from gtape.data.batching import Unbatch

        return Unbatch(self)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None,
                ) -> Any:
        """`unbatch().batch(batch_size)`; for a vector of sizes batches of each in turn."""
        from gtape.data.batching import Rebatch

        sizes = [integer(n, "batch_size") for n in as_ints(batch_size, "batch_size")]
        return Rebatch(self, sizes, _dropped(drop_remainder))

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
               name: str | None = None) -> Any:
        """Datasets of `size` elements, each `stride` after the one before; the first of each
        dataset is `shift` (without it `size`) after that of the dataset before.

        Raises:
            InvalidArgumentError: a number is not positive.
        """
        from gtape.data.windows import Window

        count = integer(size, "window: size")
        return Window(self, count, count if shift is None else integer(shift, "window: shift"),
                      integer(stride, "window: stride"), _dropped(drop_remainder))

    def group_by_window(self, key_func: Callable[..., Any], reduce_func: Callable[..., Any],
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
        from gtape.data.windows import GroupByWindow

        if (window_size is None) == (window_size_func is None):
            raise ValueError("Either the `window_size` argument or the `window_size_func` argument "
                             "must be specified.")
        if window_size is not None:
            fixed = integer(window_size, "window_size")
            return GroupByWindow(self, key_func, reduce_func, lambda key: fixed)
        size = as_function(window_size_func, "group_by_window: window_size_func")
        return GroupByWindow(self, key_func, reduce_func, lambda key: integer(
            size(key), "group_by_window: what window_size_func gives"))

    def bucket_by_sequence_length(
            self, element_length_func: Callable[..., Any], bucket_boundaries: Any,
            bucket_batch_sizes: Any, padded_shapes: Any = None, padding_values: Any = None,
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
        from gtape.data.windows import bucketed

        return bucketed(self, element_length_func, bucket_boundaries, bucket_batch_sizes,
                        padded_shapes, padding_values, pad_to_bucket_boundary, no_padding,
                        drop_remainder)


def _dropped(drop_remainder: Any) -> bool:
    return flag(drop_remainder, "drop_remainder")

"""gtape.data.experimental: what TensorFlow keeps under `tf.data.experimental`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from collections.abc import Iterator as Elements
from typing import Any

from gtape._names import lacking as _lacking
from gtape.core.errors import FailedPreconditionError
from gtape.core.formatting import shown
from gtape.data.arguments import dataset_of, integer
from gtape.data.base import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Same
from gtape.data.csv import CsvDataset, make_csv_dataset
from gtape.data.dataset import Dataset
from gtape.data.iterators import Iterator, Optional
from gtape.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from gtape.data.prefetching import Moved
from gtape.data.reading import TFRecordDatasetWriter as TFRecordWriter
from gtape.files.example_parsing import parse_example

AUTOTUNE = -1

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy",
    "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset", "DistributeOptions",
    "ExternalStatePolicy", "OptimizationOptions", "Optional", "RandomDataset", "TFRecordWriter",
    "ThreadingOptions", "assert_cardinality", "bucket_by_sequence_length", "cardinality",
    "choose_from_datasets", "copy_to_device", "dense_to_ragged_batch", "enumerate_dataset",
    "get_next_as_optional", "get_single_element", "get_structure", "group_by_window",
    "ignore_errors", "load", "make_csv_dataset", "parse_example_dataset", "prefetch_to_device",
    "rejection_resample", "sample_from_datasets", "save", "scan", "snapshot", "take_while",
    "unbatch", "unique"]

Counter = Dataset.counter
load = Dataset.load
RandomDataset = Dataset.random
choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets


def cardinality(dataset: Dataset) -> Any:
    """`dataset.cardinality()`."""
    return dataset_of(dataset, "cardinality: dataset").cardinality()


class _Counted(Same):
    """A dataset that is said to have so many elements."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def _iterate(self) -> Elements[Any]:
        number = 0
        for element in self._inputs[0]._iterate():
            number += 1
            if 0 <= self._count < number:
                raise FailedPreconditionError(
                    f"Input dataset was expected to contain {self._count} elements but contained "
                    f"more than that.")
            yield element
        # Also an infinite count is checked: a pass that ends has contradicted it.
        if number != self._count:
            expected = "an infinite number of" if self._count < 0 else self._count
            raise FailedPreconditionError(f"Input dataset was expected to contain {expected} "
                                          f"elements but contained only {number} elements.")

    def _cardinality(self) -> int:
        return self._count


def assert_cardinality(expected_cardinality: Any) -> Callable[[Dataset], Dataset]:
    """For `apply`: says how many elements a dataset has, and checks it in every pass. Raises
    FailedPreconditionError: in a pass: it has others."""
    count = integer(expected_cardinality, "assert_cardinality")
    return lambda dataset: _Counted(dataset_of(dataset, "assert_cardinality"), count)


def save(dataset: Dataset, path: object, compression: object = None, shard_func: object = None,
         checkpoint_args: object = None) -> None:
    """`dataset.save(path, compression, shard_func)`."""
    dataset_of(dataset, "save: dataset").save(path, compression, shard_func, checkpoint_args)


def parse_example_dataset(features: Any, num_parallel_calls: int = 1,
                          deterministic: bool | None = None) -> Callable[[Dataset], Dataset]:
    """For `apply`: batches of serialized Examples as dicts of tensors, by
    `tf.io.parse_example(batch, features)`."""
    return lambda dataset: dataset_of(dataset, "parse_example_dataset").map(
        lambda batch: parse_example(batch, features), num_parallel_calls, deterministic)


def get_structure(dataset_or_iterator: object) -> Any:
    """`element_spec`. Raises TypeError: of something that has none."""
    if not isinstance(dataset_or_iterator, (Dataset, Iterator)):
        raise TypeError(f"get_structure takes a dataset or an iterator of one; got "
                        f"{shown(dataset_or_iterator)}")
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator: object) -> Optional:
    """`iterator.get_next_as_optional()`. Raises TypeError: it is no iterator of a dataset."""
    if not isinstance(iterator, Iterator):
        raise TypeError(f"get_next_as_optional takes an iterator, such as iter(dataset); got "
                        f"{shown(iterator)}")
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset) -> Any:
    """`dataset.get_single_element()`."""
    return dataset_of(dataset, "get_single_element: dataset").get_single_element()


def prefetch_to_device(device: str, buffer_size: int | None = None) -> Callable[[Dataset], Dataset]:
    """For `apply`: the elements on a device, up to `buffer_size` (2 without it) of them ahead. To a
    GPU they are copied beside what it computes. To be the last transformation of a pipeline: others
    compute in host memory. Raises InvalidArgumentError: there is no such device."""
    size = AUTOTUNE if buffer_size is None else integer(buffer_size, "prefetch_to_device")
    return lambda dataset: Moved(dataset_of(dataset, "prefetch_to_device"), device, size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0",
                   ) -> Callable[[Dataset], Dataset]:
    """For `apply`: the elements on a device. A `prefetch` after it copies them ahead. Raises
    InvalidArgumentError: there is no such device."""
    # Size 0: no thread, each element is copied when it is asked for.
    return lambda dataset: Moved(dataset_of(dataset, "copy_to_device"), target_device, 0)


def _method(name: str) -> Callable[..., Any]:
    """The method of `Dataset` as a function for `apply`."""
    def given(*args: object, **kwargs: object) -> Callable[[Dataset], Dataset]:
        return lambda dataset: getattr(dataset_of(dataset, name), name)(*args, **kwargs)

    # Without `self`, for help() and inspect.
    _, *parameters = inspect.signature(getattr(Dataset, name)).parameters.values()
    given.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    given.__name__ = name
    given.__doc__ = f"For `apply`: `dataset.{name}(...)`."
    return given


(bucket_by_sequence_length, group_by_window, ignore_errors, rejection_resample, scan, snapshot,
 take_while, unbatch, unique) = map(_method, (
    "bucket_by_sequence_length", "group_by_window", "ignore_errors", "rejection_resample", "scan",
    "snapshot", "take_while", "unbatch", "unique"))
dense_to_ragged_batch, enumerate_dataset = _method("ragged_batch"), _method("enumerate")

__getattr__ = _lacking("gtape.data.experimental", __all__)

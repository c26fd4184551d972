"""What transformations give: elements and cardinalities are TensorFlow 2.21's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def values(dataset: Any) -> list[Any]:
    """The elements as Python values."""
    return [_plain(element) for element in dataset.as_numpy_iterator()]


#: name: (dataset, elements, cardinality)
_CASES: dict[str, tuple[Callable[[], Any], list[Any], int]] = {
    "batch": (
        lambda: Dataset.range(7).batch(3),
        [[0, 1, 2], [3, 4, 5], [6]], 3),
    "batchdrop": (
        lambda: Dataset.range(7).batch(3, drop_remainder=True),
        [[0, 1, 2], [3, 4, 5]], 2),
    "slices": (
        lambda: Dataset.from_tensor_slices((np.arange(6).reshape(3, 2).astype("f4"), {"b": ["x",
            "y", "z"]})).batch(2),
        [([[0.0, 1.0], [2.0, 3.0]], {"b": [b"x", b"y"]}), ([[4.0, 5.0]], {"b": [b"z"]})], 2),
    "map": (
        lambda: Dataset.range(5).map(lambda x: x*2),
        [0, 2, 4, 6, 8], 5),
    "map2": (
        lambda: Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).map(lambda a, b: {"s": a+b,
            "p": (a, b)}),
        [{"s": 5, "p": (1, 4)}, {"s": 7, "p": (2, 5)}, {"s": 9, "p": (3, 6)}], 3),
    "mapbatch": (
        lambda: Dataset.range(5).map(lambda x: (x*2, tf.cast(x, tf.float32)/2.)).batch(2),
        [([0, 2], [0.0, 0.5]), ([4, 6], [1.0, 1.5]), ([8], [2.0])], 3),
    "list": (
        lambda: Dataset.range(2).map(lambda x: [x, x]),
        [(0, 0), (1, 1)], 2),
    "filter": (
        lambda: Dataset.range(6).filter(lambda x: x%2==0),
        [0, 2, 4], -2),
    "enum": (
        lambda: Dataset.range(10, 13).enumerate(5),
        [(5, 10), (6, 11), (7, 12)], 3),
    "conc": (
        lambda: Dataset.range(2).concatenate(Dataset.range(5, 7)),
        [0, 1, 5, 6], 4),
    "flat": (
        lambda: Dataset.range(3).flat_map(lambda x: Dataset.from_tensors(x).repeat(2)),
        [0, 0, 1, 1, 2, 2], -2),
    "flat2": (
        lambda: Dataset.range(4).flat_map(lambda x: Dataset.range(x)),
        [0, 0, 1, 0, 1, 2], -2),
    "inter": (
        lambda: Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6),
            cycle_length=2, block_length=4),
        [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5],
            -2),
    "inter2": (
        lambda: Dataset.range(0, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(x),
            cycle_length=3, block_length=2),
        [1, 2, 2, 3, 3, 4, 4, 3, 4, 4, 5, 5, 5, 5, 5], -2),
    "inter3": (
        lambda: Dataset.range(0, 7).interleave(lambda x: Dataset.range(x), cycle_length=4),
        [0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 0, 3, 2, 1, 3, 2, 4, 3, 4, 5], -2),
    "window": (
        lambda: Dataset.range(7).window(3, shift=2, stride=2).flat_map(lambda w: w.batch(3)),
        [[0, 2, 4], [2, 4, 6], [4, 6], [6]], -2),
    "window2": (
        lambda: Dataset.range(7).window(3, shift=1,
            drop_remainder=True).flat_map(lambda w: w.batch(3)),
        [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]], -2),
    "window3": (
        lambda: Dataset.range(10).window(2, shift=4).flat_map(lambda w: w.batch(3)),
        [[0, 1], [4, 5], [8, 9]], -2),
    "padded": (
        lambda: Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2),
        [[[1, 0], [2, 2]], [[3, 3, 3]]], 2),
    "padded2": (
        lambda: Dataset.from_generator(lambda: iter([([1], [1, 2]), ([1, 2], [1])]),
            output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None],
            tf.int32))).padded_batch(2, padded_shapes=([4], [None]), padding_values=(-1, 9)),
        [([[1, -1, -1, -1], [1, 2, -1, -1]], [[1, 2], [1, 9]])], -2),
    "unbatch": (
        lambda: Dataset.range(7).batch(3).unbatch(),
        [0, 1, 2, 3, 4, 5, 6], -2),
    "rebatch": (
        lambda: Dataset.range(7).batch(3).rebatch(2),
        [[0, 1], [2, 3], [4, 5], [6]], -2),
    "rebatch2": (
        lambda: Dataset.range(8).batch(4).rebatch([2, 1, 1]),
        [[0, 1], [2], [3], [4, 5], [6], [7]], -2),
    "scan": (
        lambda: Dataset.range(5).scan(tf.constant(0, tf.int64), lambda s, x: (s+x, s+x)),
        [0, 1, 3, 6, 10], 5),
    "takewhile": (
        lambda: Dataset.range(9).take_while(lambda x: x<4),
        [0, 1, 2, 3], -2),
    "unique": (
        lambda: Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique(),
        [1, 2, 3], -2),
    "uniques": (
        lambda: Dataset.from_tensor_slices(["a", "b", "a"]).unique(),
        [b"a", b"b"], -2),
    "gbw": (
        lambda: Dataset.range(10).group_by_window(lambda x: x%2, lambda k, d: d.batch(3),
            window_size=3),
        [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]], -2),
    "bucket": (
        lambda: Dataset.from_generator(lambda: iter([[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10,
            11], [13, 14, 15, 16, 19, 20], [21, 22]]), tf.int64,
            output_shapes=[None]).bucket_by_sequence_length(lambda e: tf.shape(e)[0], [3, 5], [2,
            2, 2]),
        [[[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]], [[0, 0],
            [21, 22]]], -2),
    "bucket, padded to its end": (
        lambda: Dataset.from_generator(lambda: iter([[0], [1, 2, 3], [4, 5], [6]]), tf.int64,
            output_shapes=[None]).bucket_by_sequence_length(lambda e: tf.shape(e)[0], [3, 6], [2,
            2, 2], padded_shapes=[None], pad_to_bucket_boundary=True),
        [[[0, 0], [4, 5]], [[1, 2, 3, 0, 0]], [[6, 0]]], -2),
    "zip": (
        lambda: Dataset.zip((Dataset.range(3), {"a": Dataset.range(5)})),
        [(0, {"a": 0}), (1, {"a": 1}), (2, {"a": 2})], 3),
    "zip2": (
        lambda: Dataset.zip(Dataset.range(3), Dataset.range(5).map(lambda x: x*2)).batch(2),
        [([0, 1], [0, 2]), ([2], [4])], 2),
    "shard": (
        lambda: Dataset.range(10).shard(3, 1),
        [1, 4, 7], 3),
    "skiptake": (
        lambda: Dataset.range(10).skip(3).take(4).repeat(2),
        [3, 4, 5, 6, 3, 4, 5, 6], 8),
    "rep0": (
        lambda: Dataset.range(10).repeat(0),
        [], 0),
    "none": (
        lambda: Dataset.from_tensors((1, None)).map(lambda a, b: (a, b)),
        [(1, None)], 1),
    "slicenone": (
        lambda: Dataset.from_tensor_slices(([1, 2], None)),
        [(1, None), (2, None)], 2),
    "gen": (
        lambda: Dataset.from_generator(lambda: (i for i in range(3)), output_types=tf.int64),
        [0, 1, 2], -2),
    "genargs": (
        lambda: Dataset.from_generator(lambda n: iter(range(n)), args=(3,),
            output_signature=tf.TensorSpec([], tf.int32)),
        [0, 1, 2], -2),
    "counter": (
        lambda: Dataset.counter(2, 3).take(3),
        [2, 5, 8], 3),
    "strided": (
        lambda: Dataset.range(10, 0, -3),
        [10, 7, 4, 1], 4),
    "range32": (
        lambda: Dataset.range(3, output_type=tf.int32).batch(2),
        [[0, 1], [2]], 2),
    "shapeset": (
        lambda: Dataset.range(1, 4).map(lambda x: tf.fill([x], x)),
        [[1], [2, 2], [3, 3, 3]], 3),
    "dictmap": (
        lambda: Dataset.from_tensor_slices({"a":[1, 2], "b":[3, 4]}).map(lambda d: d["a"]+d["b"]),
        [4, 6], 2),
    "empty": (
        lambda: Dataset.range(0).batch(2),
        [], 0),
    "nest": (
        lambda: Dataset.from_tensors(((1, 2), {"z":3, "a":(4, )})).batch(1),
        [(([1], [2]), {"z": [3], "a": ([4],)})], 1),
}


@pytest.mark.parametrize("name", _CASES)
def test_elements_and_cardinality(name: str) -> None:
    make, expected, count = _CASES[name]
    dataset = make()
    assert int(dataset.cardinality()) == count
    assert values(dataset) == expected
    assert values(dataset) == expected


def test_interleave_opens_as_many_datasets_as_there_are() -> None:
    rows = Dataset.range(3).interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2**40)
    assert list(rows.as_numpy_iterator()) == [0, 1, 2, 0, 1, 2]


def test_an_iterator_goes_on_after_an_element_that_is_refused() -> None:
    found = iter(Dataset.range(4).map(lambda x: tf.gather([5, 6], x - 1)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(found)
    assert [next(found).numpy(), next(found).numpy()] == [5, 6]


@pytest.mark.parametrize("make, error, why", [
    (lambda d: d.concatenate([1]), TypeError, "concatenate: dataset must be a tf.data.Dataset"),
    (lambda d: d.take(2**63), tf.errors.InvalidArgumentError, "take: count must be .* int64"),
    (lambda d: d.batch(2, drop_remainder=[1, 2]), TypeError, "drop_remainder must be True"),
    (lambda d: Dataset.choose_from_datasets(d, d), TypeError, "Write .dataset."),
    (lambda d: d.apply(7), TypeError, "transformation_func must be a function; got 7"),
    (lambda d: d.ragged_batch(2, row_splits_dtype=tf.float32), ValueError, "tf.int32 or tf.int64"),
    (lambda d: d.rejection_resample(lambda x: x, [0.5, math.nan]), ValueError, "must be finite"),
    (lambda d: d.padded_batch(2, padded_shapes=-1), TypeError, "padded_shapes must be a list"),
    (lambda d: list(d.scan(0, lambda s, x: s)), TypeError, "must return a pair")])
def test_what_is_no_argument(make: Callable[[Any], Any], error: type[Exception], why: str) -> None:
    dataset = Dataset.range(3)
    with pytest.raises(error, match=why):
        make(dataset)
    assert list(dataset.as_numpy_iterator()) == [0, 1, 2]

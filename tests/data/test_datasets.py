"""Datasets as objects: what they say of themselves, and what they are made from."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def test_specs_follow_the_transformations() -> None:
    dataset = Dataset.from_tensor_slices((np.zeros((6, 3), np.float32), np.zeros(6, np.int64)))
    row = (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int64))
    assert dataset.element_spec == dataset.shuffle(3).repeat().element_spec == row
    assert dataset.batch(2).element_spec == (
        tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int64))
    assert dataset.batch(2, drop_remainder=True).element_spec[0] == tf.TensorSpec([2, 3])
    assert dataset.batch(2).map(lambda x, y: tf.reduce_sum(x, 1)).element_spec == (
        tf.TensorSpec([None], tf.float32))
    assert dataset.batch(2).unbatch().element_spec == row
    assert dataset.window(2).element_spec == tuple(map(tf.data.DatasetSpec, row))


def test_the_spec_of_a_python_function_comes_from_an_element() -> None:
    dataset = Dataset.range(3).map(lambda x: np.zeros((2, int(x.numpy()) + 1), np.float32))
    assert dataset.element_spec == tf.TensorSpec([None, None], tf.float32)


def test_lists_that_a_function_returns_are_tuples() -> None:
    assert Dataset.range(2).map(lambda x: [x, x]).element_spec == (
        tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64))


def test_namedtuples_pass_whole() -> None:
    Pair = namedtuple("Pair", ["a", "b"])
    dataset = Dataset.from_tensor_slices(Pair([1, 2], [3, 4])).map(lambda pair: pair.a * pair.b)
    assert [int(x) for x in dataset] == [3, 8]


def test_iterators_give_elements_until_the_end() -> None:
    iterator = iter(Dataset.range(2))
    assert isinstance(iterator, tf.data.Iterator)
    assert (int(next(iterator)), int(iterator.get_next())) == (0, 1)
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


def test_a_memory_map_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.bin"
    np.arange(40, dtype=np.float32).tofile(path)
    rows = np.memmap(path, np.float32, "r+", shape=(10, 4))
    dataset = Dataset.from_tensor_slices(rows).shuffle(10, seed=1).batch(4)
    rows[0] = -1
    found = np.concatenate([batch.numpy() for batch in dataset])
    np.testing.assert_array_equal(found[found[:, 1].argsort()], rows)


def test_arrays_are_copied() -> None:
    x = np.zeros(3)
    dataset = Dataset.from_tensor_slices(x)
    x[:] = 1
    assert [float(v) for v in dataset] == [0, 0, 0]


def test_generators_may_use_one_array_again() -> None:
    def items() -> Any:
        x = np.zeros(2, np.float32)
        for i in range(3):
            x[:] = i
            yield x

    dataset = Dataset.from_generator(items, output_signature=tf.TensorSpec([2], tf.float32))
    np.testing.assert_array_equal(next(iter(dataset.batch(3))), [[0, 0], [1, 1], [2, 2]])


def test_pandas_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    found = list(Dataset.from_tensor_slices(dict(frame)).as_numpy_iterator())
    assert found == [{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}]


def test_a_cache_computes_elements_once() -> None:
    calls = []

    def noted(x: Any) -> Any:
        calls.append(int(x.numpy()))
        return x

    dataset = Dataset.range(3).map(noted).cache()
    next(iter(dataset))
    assert [int(x) for _ in range(2) for x in dataset] == [0, 1, 2] * 2
    assert calls == [0, 0, 1, 2]


def test_a_cache_keeps_the_order_of_the_first_pass() -> None:
    dataset = Dataset.range(50).shuffle(50).cache()
    first = [int(x) for x in dataset]
    assert [int(x) for x in dataset] == first


def test_a_cache_in_a_file_is_there_for_other_programs(tmp_path: Path) -> None:
    path = str(tmp_path / "folder" / "cache")
    element = {"x": [1.5, 2.5], "s": "text", "i": np.int8(3)}
    first = list(Dataset.from_tensors(element).repeat(2).cache(path).as_numpy_iterator())
    other = Dataset.from_tensors({"x": [0.0, 0.0], "s": "", "i": np.int8(0)}).cache(path)
    second = list(other.as_numpy_iterator())
    assert len(first) == len(second) == 2
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a["x"], b["x"])
        assert (a["s"], a["i"]) == (b["s"], b["i"]) == (b"text", 3)


def test_options_are_those_of_all_that_a_dataset_is_made_from() -> None:
    first, second = tf.data.Options(), tf.data.Options()
    first.deterministic = False
    first.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    second.threading.private_threadpool_size = 3
    dataset = Dataset.range(3).with_options(first).batch(2).with_options(second)
    found = dataset.options()
    assert found.deterministic is False
    assert found.experimental_distribute.auto_shard_policy is (
        tf.data.experimental.AutoShardPolicy.DATA)
    assert found.threading.private_threadpool_size == 3
    assert found.autotune.enabled is None
    with pytest.raises(AttributeError, match="Cannot set the property speed"):
        first.speed = 1


def test_list_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text("")
    found = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert [Path(x.numpy().decode()).name for x in found] == ["a.txt", "b.txt"]
    assert len(Dataset.list_files([str(tmp_path / "*")])) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        Dataset.list_files(str(tmp_path / "*.csv"))


def test_sparse_tensors_are_batched_and_sliced() -> None:
    whole = tf.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 4])
    dataset = Dataset.from_tensor_slices(whole)
    assert dataset.element_spec == tf.SparseTensorSpec([4], tf.int32)
    batches = list(dataset.batch(2))
    assert dataset.batch(2).element_spec == tf.SparseTensorSpec([None, 4], tf.int32)
    dense = [tf.sparse.to_dense(x).numpy().tolist() for x in batches]
    assert dense == [[[0, 5, 0, 0], [0, 0, 0, 0]], [[6, 0, 0, 0]]]
    again = [tf.sparse.to_dense(x).numpy().tolist() for x in dataset.batch(3).unbatch()]
    assert again == [[0, 5, 0, 0], [0, 0, 0, 0], [6, 0, 0, 0]]


def test_elements_and_batches_of_one_pipeline_agree() -> None:
    """Rows one by one, and whole batches at once, are computed by other code."""
    x = np.random.default_rng(0).random((300, 5)).astype(np.float32)
    y = np.arange(300) % 7

    def make() -> Any:
        return Dataset.from_tensor_slices({"x": x, "y": y}).shuffle(40, seed=3).map(
            lambda d: {"x": tf.exp(d["x"]) / 3.0, "y": tf.one_hot(d["y"], 7)}).skip(5).take(250)

    rows = list(make().as_numpy_iterator())
    batches = list(make().batch(32).as_numpy_iterator())
    assert [len(b["x"]) for b in batches] == [32] * 7 + [26]
    for name in ("x", "y"):
        np.testing.assert_array_equal(
            np.stack([r[name] for r in rows]), np.concatenate([b[name] for b in batches]))


def test_an_often_called_function_gives_the_same_before_and_after_it_is_compiled() -> None:
    dataset = Dataset.range(3000).map(lambda x: tf.reduce_sum(
        tf.cast(tf.range(10, dtype=tf.int64) * x, tf.float32)))
    found = np.array([float(v) for v in dataset])
    np.testing.assert_allclose(found, 45.0 * np.arange(3000))


def test_ragged_tensors_are_sliced_and_batched() -> None:
    source = tf.ragged.constant([[1, 2], [3], []])
    dataset = Dataset.from_tensor_slices(source)
    assert dataset.element_spec == tf.RaggedTensorSpec([None], tf.int32, 0)
    assert [x.numpy().tolist() for x in dataset] == [[1, 2], [3], []]
    batches = dataset.batch(2)
    assert batches.element_spec == tf.RaggedTensorSpec([None, None], tf.int32, 1)
    assert [x.to_list() for x in batches] == [[[1, 2], [3]], [[]]]
    assert batches.unbatch().element_spec == dataset.element_spec
    assert [x.numpy().tolist() for x in batches.unbatch()] == [[1, 2], [3], []]
    deep = tf.ragged.constant([[[1], [2, 3]], [[3]], []])
    deeper = Dataset.from_tensor_slices(deep).batch(2)
    assert deeper.element_spec == tf.RaggedTensorSpec([None, None, None], tf.int32, 2)
    assert [x.to_list() for x in deeper] == [[[[1], [2, 3]], [[3]]], [[]]]


def test_a_function_of_rows_of_a_ragged_tensor_is_one_of_tensors() -> None:
    source = tf.ragged.constant([[1, 2], [3], []])
    dataset = Dataset.from_tensor_slices((source, [1, 2, 3])).map(lambda a, b: (a * b, b))
    assert dataset.element_spec == (tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32))
    assert [a.numpy().tolist() for a, _ in dataset] == [[1, 2], [6], []]


@pytest.mark.parametrize("by_apply", [False, True])
def test_elements_of_different_lengths_in_ragged_batches(by_apply: bool) -> None:
    source = Dataset.range(4).map(lambda x: (tf.range(x), x))
    made = source.apply(tf.data.experimental.dense_to_ragged_batch(2)) if by_apply else (
        source.ragged_batch(2))
    assert made.element_spec == (tf.RaggedTensorSpec([None, None], tf.int64, 1),
                                 tf.TensorSpec([None], tf.int64))
    assert [x.to_list() for x, _ in made] == [[[], [0]], [[0, 1], [0, 1, 2]]]
    assert [y.numpy().tolist() for _, y in made] == [[0, 1], [2, 3]]


def test_a_filter_of_rows_and_of_elements_agree() -> None:
    x = np.random.default_rng(0).random((5000, 3)).astype(np.float32)

    def made(source: Any) -> list[Any]:
        dataset = source.map(lambda i, x: (i, x * 2.0)).filter(
            lambda i, x: x[0] + x[1] < 1.0).skip(3).batch(32)
        return [(i.tolist(), x.tolist()) for i, x in dataset.as_numpy_iterator()]

    rows = Dataset.from_tensor_slices((np.arange(5000), x))
    found = made(rows)
    assert found == made(rows.apply(lambda d: d.take_while(lambda i, x: True)))
    assert 500 < sum(len(i) for i, _ in found) < 2000


def test_a_filter_of_few_rows_finds_them() -> None:
    dataset = Dataset.range(10 ** 6).filter(lambda x: x % 300_000 == 7)
    assert [int(x) for x in dataset] == [7, 300_007, 600_007, 900_007]
    assert next(iter(Dataset.range(10 ** 12).filter(lambda x: x > 5))).numpy() == 6

"""Pipelines compute on the CPU; their elements come to where they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.devices.probe import device_named

Dataset = tf.data.Dataset


def _pipeline() -> Any:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    return Dataset.from_tensor_slices({"x": x, "name": list("abcdef")}).shuffle(6, seed=1).map(
        lambda d: {"x": d["x"] * 2.0, "name": d["name"]}).batch(4)


def test_elements_come_to_the_current_device(device: str) -> None:
    found = list(_pipeline())
    assert {d["x"].device for d in found} == {device}
    assert {d["name"].device for d in found} == {"CPU:0"}
    rows = np.concatenate([d["x"].numpy() for d in found])
    assert sorted(rows.ravel().tolist()) == [2.0 * i for i in range(12)]


def test_functions_compute_in_host_memory(device: str) -> None:
    seen = []

    def noted(x: Any) -> Any:
        seen.append((x.device, tf.constant(1.0).device))
        return x

    iterator = iter(Dataset.range(3).map(lambda x: noted(x + x)))
    assert next(iterator).device == device
    assert set(seen) == {("CPU:0", "CPU:0")}


def test_tensors_of_a_device_are_sources(device: str) -> None:
    x = tf.constant([[1.0], [2.0]])
    assert x.device == device
    found = next(iter(Dataset.from_tensor_slices(x).batch(2)))
    assert found.device == device
    np.testing.assert_array_equal(found, [[1], [2]])


def test_an_iterator_feeds_a_function_on_its_device(device: str) -> None:
    total = tf.Variable(tf.zeros([2]))

    @tf.function
    def step(iterator: Any) -> None:
        total.assign_add(tf.reduce_sum(iterator.get_next(), 0))

    iterator = iter(Dataset.from_tensor_slices(np.ones((6, 2), np.float32)).batch(2))
    for _ in range(3):
        step(iterator)
    np.testing.assert_array_equal(total, [6, 6])


def test_what_a_dataset_is_reduced_to_comes_to_the_current_device(device: str) -> None:
    dataset = Dataset.from_tensor_slices(np.ones(3, np.float32))
    for found in (dataset.reduce(0.0, lambda total, x: total + x + tf.constant(1.0)),
                  dataset.reduce(tf.constant(0.0), lambda total, x: total + 2.0 * x.numpy())):
        assert (found.device, float(found)) == (device, 6.0)


@pytest.mark.gpu
def test_arrays_of_the_host_make_no_detour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_named("GPU:0"), "upload", lambda array: pytest.fail("uploaded"))
    x = np.arange(6.0).reshape(3, 2)
    with tf.device("GPU:0"):
        datasets = [Dataset.from_tensors({"x": x, "y": [1, 2]}),
                    Dataset.from_tensor_slices((x, [1, 2, 3])),
                    Dataset.from_tensor_slices({"x": x}).padded_batch(2, padding_values=7.0)]
    with tf.device("CPU:0"):
        assert [len(list(dataset)) for dataset in datasets] == [1, 3, 2]


# ---------------------------------------------------------------- to a device ahead of time


@pytest.mark.parametrize("size", [-1, 0, 1, 3, None])
def test_prefetch_to_a_device(device: str, size: int | None) -> None:
    with tf.device("CPU:0"):
        moved = _pipeline().apply(tf.data.experimental.prefetch_to_device(device, size))
        found = list(moved)
    assert len(moved) == 2 and moved.element_spec == _pipeline().element_spec
    assert {d["x"].device for d in found} == {device}
    assert {d["name"].device for d in found} == {"CPU:0"}
    rows = np.concatenate([d["x"].numpy() for d in found])
    assert sorted(rows.ravel().tolist()) == [2.0 * i for i in range(12)]


def _sleepy(x: Any) -> Any:
    time.sleep(0.002)
    return np.full((3, 2), float(x), np.float32)


def _slow(count: int) -> Any:
    return Dataset.range(count).map(lambda x: tf.numpy_function(_sleepy, [x], tf.float32))


_TO_DEVICE: list[Callable[[Any, str], Any]] = [
    lambda dataset, device: dataset.prefetch(2),
    lambda dataset, device: dataset.prefetch(1).with_options(tf.data.Options()),
    lambda dataset, device: dataset.apply(tf.data.experimental.prefetch_to_device(device, 1)),
    lambda dataset, device: dataset.apply(tf.data.experimental.copy_to_device(device)),
    lambda dataset, device: dataset.apply(tf.data.experimental.copy_to_device(device)).prefetch(3),
    lambda dataset, device: dataset.apply(
        tf.data.experimental.prefetch_to_device(device)).prefetch(1).take(99),
    lambda dataset, device: dataset.apply(tf.data.experimental.prefetch_to_device(device)).apply(
        tf.data.experimental.copy_to_device(device))]


@pytest.mark.parametrize("made", _TO_DEVICE)
@pytest.mark.parametrize("slow", [False, True])
def test_elements_arrive_in_order(device: str, made: Any, slow: bool) -> None:
    source = _slow(20) if slow else Dataset.range(20).map(
        lambda x: tf.fill([3, 2], tf.cast(x, tf.float32)))
    found = list(made(source, device))
    assert {x.device for x in found} == {device}
    assert [x.numpy().tolist() for x in found] == [[[float(i)] * 2] * 3 for i in range(20)]


@pytest.mark.parametrize("slow", [False, True])
def test_what_came_before_an_error_arrives(device: str, slow: bool) -> None:
    def failing(x: Any) -> Any:
        if x.numpy() == 15:
            raise ValueError("fifteen")
        return _sleepy(x) if slow else x.numpy()

    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="fifteen"):
        for x in Dataset.range(30).map(failing).prefetch(4):
            found.append(float(tf.reduce_max(x)))
    assert found == list(range(15))


@pytest.mark.gpu
@pytest.mark.parametrize("slow", [False, True])
def test_the_next_element_is_on_its_way_before_the_present_one_is_used(
        slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, log = device_named("GPU:0"), []
    send = gpu.send
    monkeypatch.setattr(gpu, "send", lambda arrays: log.append("sent") or send(arrays))
    with tf.device("GPU:0"):
        iterator = iter((_slow(9) if slow else Dataset.range(9)).prefetch(1))
        for i in range(9):
            next(iterator)
            log.append("used")
            while i >= 4 and log.count("sent") < min(i + 2, 9):
                time.sleep(0.001)  # a test that hangs is ended by pytest
    if not slow:
        assert log == ["sent", *["sent", "used"] * 8, "used"]
    assert log.count("sent") == log.count("used") == 9


@pytest.mark.gpu
def test_an_element_is_copied_to_a_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device_named("GPU:0")
    monkeypatch.setattr(gpu, "upload", lambda array: pytest.fail("copied again"))
    to_device = tf.data.experimental.prefetch_to_device("GPU:0")
    for home in ("GPU:0", "CPU:0"):
        with tf.device(home):
            found = list(_pipeline().apply(to_device))
        assert {d["x"].device for d in found} == {"GPU:0"}


@pytest.mark.gpu
def test_back_to_the_host() -> None:
    there = _pipeline().apply(tf.data.experimental.prefetch_to_device("GPU:0"))
    with tf.device("CPU:0"):
        found = list(there.apply(tf.data.experimental.prefetch_to_device("CPU:0")))
    assert {d["x"].device for d in found} == {"CPU:0"}


def test_a_device_that_is_not_there() -> None:
    for to_device in (tf.data.experimental.prefetch_to_device("GPU:77"),
                      tf.data.experimental.copy_to_device("TPU:0")):
        with pytest.raises(tf.errors.InvalidArgumentError):
            Dataset.range(3).apply(to_device)


# ---------------------------------------------------------------- sparse and ragged tensors


def _placed(found: list[Any], device: str) -> None:
    """Every tensor of these composites is on the device."""
    parts = [part for x in found for part in tf.nest.flatten(x, expand_composites=True)]
    assert {part.device for part in parts} == {device}


def test_sparse_tensors_are_sliced_mapped_and_batched(device: str) -> None:
    whole = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [5.0, 6.0, 7.0], [3, 4])
    assert whole.device == device
    dataset = Dataset.from_tensor_slices(whole)
    rows = list(dataset)
    _placed(rows, device)
    dense = [[0, 5, 0, 0], [0, 0, 0, 0], [6, 0, 0, 7]]
    assert [tf.sparse.to_dense(x).numpy().tolist() for x in rows] == dense
    doubled = dataset.map(lambda x: x * 2.0).batch(2).prefetch(1)
    batches = list(doubled)
    _placed(batches, device)
    found = np.concatenate([tf.sparse.to_dense(x).numpy() for x in batches])
    np.testing.assert_array_equal(found, 2.0 * np.array(dense))
    again = [tf.sparse.to_dense(x).numpy().tolist() for x in dataset.batch(3).unbatch()]
    assert again == dense
    assert [x.numpy().tolist() for x in dataset.map(tf.sparse.to_dense)] == dense
    (one,) = Dataset.from_tensors((whole, 1.0))
    np.testing.assert_array_equal(tf.sparse.to_dense(one[0]) * one[1], dense)


def test_ragged_tensors_are_sliced_mapped_and_batched(device: str) -> None:
    whole = tf.ragged.constant([[[1.0], [2.0, 3.0]], [[4.0]], []])
    assert whole.device == device
    dataset = Dataset.from_tensor_slices(whole)
    rows = list(dataset)
    _placed(rows, device)
    assert [x.to_list() for x in rows] == whole.to_list()
    batches = list(dataset.map(lambda x: x + 1.0).batch(2).prefetch(1))
    _placed(batches, device)
    assert [x.to_list() for x in batches] == [[[[2.0], [3.0, 4.0]], [[5.0]]], [[]]]
    assert [x.to_list() for x in dataset.batch(3).unbatch()] == whole.to_list()
    made = Dataset.range(4).map(lambda n: tf.range(n)).ragged_batch(4)
    (found,) = made
    _placed([found], device)
    assert (found * tf.constant(2, tf.int64)).to_list() == [[], [0], [0, 2], [0, 2, 4]]


def test_composites_from_python_functions(device: str) -> None:
    def items() -> Any:
        for i in range(2):
            yield tf.RaggedTensor.from_row_lengths([1.0 + i, 2.0], [1, 1])

    source = Dataset.from_generator(items, output_signature=tf.RaggedTensorSpec([None, None]))
    (batch,) = source.batch(2)
    _placed([batch], device)
    assert batch.to_list() == [[[1.0], [2.0]], [[2.0], [2.0]]]
    made = Dataset.range(2).map(lambda n: tf.sparse.from_dense([[0, int(n.numpy())]]))
    assert [tf.sparse.to_dense(x).numpy().tolist() for x in made] == [[[0, 0]], [[0, 1]]]


def test_ragged_strings_stay_in_host_memory(device: str) -> None:
    words = tf.ragged.constant([["a", "b"], ["c"]])
    for dataset in (Dataset.from_tensor_slices(words).batch(2),
                    Dataset.from_tensors(words).prefetch(1)):
        (found,) = dataset
        _placed([found], "CPU:0")
        assert found.to_list() == [[b"a", b"b"], [b"c"]]


def test_the_row_splits_of_a_ragged_tensor_are_known_where_it_goes(
        device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tf.ragged.constant([[[1.0], [2.0, 3.0]], [[4.0]], []])
    (found,) = Dataset.from_tensors(whole).prefetch(1)
    home = device_named(device)
    monkeypatch.setattr(home, "download", lambda array: pytest.fail("the splits are known"))
    assert found.bounding_shape().shape == [3]
    assert found[0].shape[0] == 2

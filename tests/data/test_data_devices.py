"""Pipelines compute on the CPU; their elements come to where they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

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


@pytest.mark.parametrize("size", [0, 2])
def test_prefetch_to_a_device(device: str, size: int) -> None:
    with tf.device("CPU:0"):
        moved = _pipeline().apply(tf.data.experimental.prefetch_to_device(device, size))
        found = [d["x"] for d in moved]
    assert {x.device for x in found} == {device}
    assert sum(len(x) for x in found) == 6

"""Iterators and datasets in traced functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

Dataset = tf.data.Dataset


def _pairs() -> Any:
    x = np.arange(21.0, dtype=np.float32).reshape(7, 3)
    return Dataset.from_tensor_slices((x, np.arange(7))).batch(2)


def test_get_next_takes_the_next_element_at_every_call() -> None:
    traces, total = [], tf.Variable(tf.zeros([3]))

    @tf.function
    def step(iterator: Any) -> Any:
        traces.append(1)
        x, y = iterator.get_next()
        total.assign_add(tf.reduce_sum(x, 0))
        return tf.reduce_sum(y)

    for _ in range(2):
        iterator, found = iter(_pairs()), []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(int(step(iterator)))
        assert found == [1, 5, 9, 6]
    np.testing.assert_array_equal(total, [126, 140, 154])
    # One trace for batches of two rows, one for the last of one row, one that finds the end.
    assert len(traces) == 3


def test_a_call_may_take_several_elements() -> None:
    @tf.function
    def two(iterator: Any) -> Any:
        return next(iterator), iterator.get_next()

    iterator = iter(Dataset.range(5))
    assert [[int(x) for x in two(iterator)] for _ in range(2)] == [[0, 1], [2, 3]]
    assert int(next(iterator)) == 4


def test_a_call_may_take_none() -> None:
    unused = tf.function(lambda iterator, x: x + 1)
    iterator = iter(Dataset.range(2))
    assert int(unused(iterator, tf.constant(1))) == 2
    assert [int(x) for x in iterator] == [0, 1]


def test_an_optional_tells_the_end_in_a_trace() -> None:
    @tf.function
    def step(iterator: Any) -> Any:
        found = iterator.get_next_as_optional()
        if found.has_value():
            return found.get_value()
        return tf.constant(-1, tf.int64)

    iterator = iter(Dataset.range(2))
    assert [int(step(iterator)) for _ in range(4)] == [0, 1, -1, -1]


def test_an_iterator_from_outside_is_a_step_at_every_call() -> None:
    iterator = iter(Dataset.range(3))
    double = tf.function(lambda: iterator.get_next() * 2)
    assert [int(double()) for _ in range(3)] == [0, 2, 4]
    with pytest.raises(tf.errors.OutOfRangeError):
        double()


def test_gradients_flow_through_what_is_computed_from_elements() -> None:
    w = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def slope(iterator: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(iterator.get_next()[0] * w)
        return tape.gradient(loss, w)

    iterator = iter(_pairs())
    np.testing.assert_array_equal(slope(iterator), [3, 5, 7])
    np.testing.assert_array_equal(slope(iterator), [15, 17, 19])


def test_a_tape_around_the_call_sees_the_function() -> None:
    w = tf.Variable(2.0)
    product = tf.function(lambda iterator: w * tf.cast(iterator.get_next(), tf.float32))
    iterator = iter(Dataset.range(3, 6))
    with tf.GradientTape() as tape:
        y = product(iterator)
    assert float(tape.gradient(y, w)) == 3.0
    assert float(product(iterator)) == 8.0


def test_a_loop_over_a_dataset_runs_at_every_call() -> None:
    counts = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def total(dataset: Any) -> Any:
        found = tf.constant(0, tf.int64)
        for x in dataset:
            found += x
            counts.assign_add(1)
        return found

    dataset = Dataset.range(5)
    with pytest.warns(tf.errors.EagerFunctionWarning, match="a loop over a dataset"):
        assert int(total(dataset)) == 10
    assert int(total(dataset)) == 10
    assert int(counts) == 10


def test_pipelines_are_neither_traced_nor_recorded_with_what_is_around_them() -> None:
    w = tf.Variable(3.0)
    dataset = Dataset.range(1, 3).map(lambda x: tf.cast(x, tf.float32) * w)
    with tf.GradientTape() as tape:
        y = next(iter(dataset)) * w
    assert float(tape.gradient(y, w)) == 3.0

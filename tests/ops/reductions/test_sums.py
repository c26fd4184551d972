"""add_n, accumulate_n and scalar_mul."""

from __future__ import annotations

import pytest

import gtape as tf


def test_one_tensor_is_given_back():
    x = tf.constant([1.0])
    assert tf.add_n([x]) is x


def test_add_n_counts_repeated_tensors():
    x, y = tf.constant([1.0]), tf.constant([2.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        total = tf.add_n([x, x, y])
    assert total.numpy().tolist() == [4.0]
    assert [g.numpy().tolist() for g in tape.gradient(total, [x, y])] == [[2.0], [1.0]]


def test_add_n_leaves_its_inputs_alone():
    parts = [tf.constant([1.0, 2.0]) for _ in range(4)]
    tf.add_n(parts)
    assert [p.numpy().tolist() for p in parts] == [[1.0, 2.0]] * 4


def test_add_n_takes_slices():
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
    assert tf.add_n([rows, tf.ones((2, 1))]).numpy().tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("values", [[], None, tf.constant(1.0)])
def test_add_n_needs_a_list(values):
    with pytest.raises(ValueError, match="add_n"):
        tf.add_n(values)


def test_add_n_does_not_broadcast():
    with pytest.raises(tf.errors.InvalidArgumentError, match="one shape"):
        tf.add_n([tf.ones(1), tf.ones(2)])


def test_accumulate_n_checks_what_was_asked_for():
    assert tf.math.accumulate_n([tf.ones(2), tf.ones(2)], shape=[2]).numpy().tolist() == [2, 2]
    with pytest.raises(ValueError, match="shape"):
        tf.math.accumulate_n([tf.ones(2)], shape=[3])
    with pytest.raises(ValueError, match="float64"):
        tf.math.accumulate_n([tf.ones(2)], tensor_dtype=tf.float64)


def test_scalar_mul():
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
    assert tf.scalar_mul(3.0, rows).values.numpy().tolist() == [[3.0]]
    assert tf.scalar_mul(2, tf.constant([1.5])).numpy().tolist() == [3.0]
    with pytest.raises(ValueError, match="scalar"):
        tf.scalar_mul([2.0], tf.constant([1.0]))

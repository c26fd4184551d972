"""unique and unique_with_counts."""

from __future__ import annotations

import pytest

import gtape as tf


def test_in_the_order_of_first_occurrence() -> None:
    found = tf.unique_with_counts([3, 1, 3, 2], tf.int64)
    assert found.y.numpy().tolist() == [3, 1, 2]
    assert found.idx.numpy().tolist() == [0, 1, 0, 2] and found.idx.dtype == tf.int64
    assert found.count.numpy().tolist() == [2, 1, 1]
    assert type(tf.unique([1])).__name__ == "Unique" and tf.unique([1]).idx.dtype == tf.int32


def test_strings_and_nothing() -> None:
    assert tf.unique(["b", "a", "b"]).y.numpy().tolist() == [b"b", b"a"]
    assert tf.unique([]).y.shape == [0]


def test_only_vectors() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="vector"):
        tf.unique([[1]])


def test_no_gradient_is_registered() -> None:
    x = tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.unique(x).y
    with pytest.raises(LookupError, match="Unique"):
        tape.gradient(y, x)

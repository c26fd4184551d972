"""Broadcasting against no rows, at both orders."""

from __future__ import annotations

import numpy as np

import gtape as tf


def test_second_order_of_a_row_broadcast_to_no_rows() -> None:
    a, b = tf.zeros([0, 3]), tf.ones([1, 3])
    with tf.GradientTape() as outer:
        outer.watch([a, b])
        with tf.GradientTape() as inner:
            inner.watch([a, b])
            y = tf.exp(a * b)
        first = inner.gradient(y, [a, b])
    second = outer.gradient(first, [a, b])
    assert [g.shape.as_list() for g in (*first, *second)] == [[0, 3], [1, 3]] * 2
    assert not np.any(second[1].numpy())

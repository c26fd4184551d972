"""IndexedSlices beside tensors: dense there, and still part of the tape."""

import numpy as np

import gtape as tf


def test_dense_plus_sparse_is_differentiated_again():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for terms in ((0, 1), (1, 0)):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                both = (tf.reduce_sum(tf.gather(x, [0]) ** 3), tf.reduce_sum(x**2))
                y = both[terms[0]] + both[terms[1]]
            g = tape.gradient(y, x)
        np.testing.assert_allclose(g, [[5, 16], [6, 8]])
        np.testing.assert_allclose(outer.gradient(g, x), [[8, 14], [2, 2]])


def test_a_tensor_plus_slices():
    values = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(values)
        y = tf.ones((2, 2)) + tf.IndexedSlices(values, [1], [2, 2])
    np.testing.assert_array_equal(y, [[1, 1], [2, 3]])
    np.testing.assert_array_equal(tape.gradient(y, values), [[1, 1]])

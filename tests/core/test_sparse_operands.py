"""IndexedSlices beside tensors: dense there, and still part of the tape."""

import operator

import numpy as np
import pytest

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


_SLICES = tf.IndexedSlices(tf.ones((2, 3)), [1, 1], [4, 3])


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
@pytest.mark.parametrize("other", [
    lambda: tf.constant(2.0), lambda: tf.Variable(2.0), lambda: tf.ones((4, 3))])
def test_with_a_tensor_slices_are_a_tensor(wrap, other):
    """As with TensorFlow, of a scalar too: what is squared next is the sum of equal rows."""
    given = other()
    for symbol in (operator.mul, operator.add, operator.sub):
        for swapped in (False, True):
            pair = (given, _SLICES) if swapped else (_SLICES, given)
            made = wrap(lambda: symbol(*pair))()  # noqa: B023
            assert isinstance(made, tf.Tensor)
            expected = symbol(*[np.asarray(tf.convert_to_tensor(v)) for v in pair])
            np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(wrap(lambda: _SLICES / given)(), _SLICES.numpy() / given)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_beside_a_variable_of_keras(wrap):
    given = tf.keras.Variable(np.ones((4, 3), "float32"))
    for made in wrap(lambda: (_SLICES + given, given + _SLICES))():
        np.testing.assert_array_equal(made, _SLICES.numpy() + 1)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_with_a_number_they_are_slices(wrap):
    for factor in (2, 0.5, np.float32(3)):
        product, quotient = wrap(lambda: (_SLICES * factor, _SLICES / factor))()  # noqa: B023
        for made, value in ((product, factor), (quotient, 1 / factor)):
            assert isinstance(made, tf.IndexedSlices)
            np.testing.assert_allclose(made.values, np.full((2, 3), value), rtol=1e-6)

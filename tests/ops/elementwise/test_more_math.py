"""Complex parts of real tensors, polynomials, orderings, permutations, confusion matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gtape as tf


def test_parts_of_real_tensors():
    x = tf.constant([-1.0, 2.0])
    assert tf.math.real(x) is x and tf.math.conj(x) is x
    assert tf.math.imag(x).numpy().tolist() == [0, 0]
    np.testing.assert_allclose(tf.math.angle(x), [math.pi, 0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.angle(x)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("fn", [tf.math.real, tf.math.imag, tf.math.conj, tf.math.angle])
def test_parts_take_numbers(fn):
    with pytest.raises(TypeError, match="numbers"):
        fn(tf.constant([True]))


def test_reciprocal_no_nan():
    x = tf.constant([2.0, 0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.reciprocal_no_nan(x)
    assert y.numpy().tolist() == [0.5, 0]
    assert tape.gradient(y, x).numpy().tolist() == [-0.25, 0]


def test_polyval():
    assert tf.math.polyval([1.0, 2.0, 3.0], tf.constant(2.0)).numpy() == 11
    assert tf.math.polyval([], 3.0).numpy() == 0
    with pytest.raises(ValueError, match="list"):
        tf.math.polyval(tf.ones(2), 3.0)


@pytest.mark.parametrize("x, non_decreasing, increasing", [
    ([1, 2, 2], True, False), ([1, 2, 3], True, True), ([2, 1], False, False), ([], True, True),
    ([[1.0, 2.0], [3.0, 4.0]], True, True), (5.0, True, True)])
def test_orderings(x, non_decreasing, increasing):
    assert bool(tf.math.is_non_decreasing(x)) is non_decreasing
    assert bool(tf.math.is_strictly_increasing(x)) is increasing


def test_invert_permutation():
    assert tf.math.invert_permutation([2, 0, 1]).numpy().tolist() == [1, 2, 0]
    for bad in ([1, 1], [0, 2], [0.0, 1.0], [[0]]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="invert_permutation"):
            tf.math.invert_permutation(bad)


def test_confusion_matrix():
    assert tf.math.confusion_matrix([1, 2], [1, 1]).numpy().tolist() == [
        [0, 0, 0], [0, 1, 0], [0, 1, 0]]
    weighed = tf.math.confusion_matrix([0, 0], [1, 1], 2, [0.5, 2.0], tf.float32)
    assert weighed.numpy().tolist() == [[0, 2.5], [0, 0]]
    assert tf.math.confusion_matrix([], []).shape == (0, 0)


@pytest.mark.parametrize("labels, guesses, classes", [
    ([-1, 2], [1, 1], None), ([1, 2], [1, 1], 2), ([1, 2], [1], None), ([[1, 2]], [[1, 2]], None)])
def test_confusion_matrix_errors(labels, guesses, classes):
    with pytest.raises(tf.errors.InvalidArgumentError, match="confusion_matrix"):
        tf.math.confusion_matrix(labels, guesses, classes)


def test_the_namespace_says_what_it_lacks():
    with pytest.raises(AttributeError, match="qmc"):
        tf.math.sobol_sample
    with pytest.raises(AttributeError, match="nonsense"):
        tf.math.nonsense


def test_sign_of_complex_numbers_and_its_gradient():
    z = tf.constant([3 + 4j, 0j])
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = tf.math.real(tf.sign(z))
    np.testing.assert_allclose(tf.sign(z), [0.6 + 0.8j, 0])
    # d(x / |z|) = y² / |z|³ dx - x y / |z|³ dy
    np.testing.assert_allclose(tape.gradient(y, z)[0], (16 - 12j) / 125, rtol=1e-6)


def test_divide_no_nan_of_integers():
    found = tf.math.divide_no_nan([1, 3], [2, 0])
    assert found.dtype is tf.float64 and found.numpy().tolist() == [0.5, 0]
    assert tf.math.divide_no_nan(np.int8([1]), np.int8([4])).dtype is tf.float32
    with pytest.raises(TypeError, match="divide_no_nan"):
        tf.math.divide_no_nan(tf.constant(1.0), tf.constant(1))

"""variable[...].assign(value)."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_every_kind_of_index() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    assert v[0].assign(5.0).numpy().tolist() == [5, 2, 3]
    v[1:].assign([7.0, 8.0])
    v[::2].assign_add([1.0, 1.0])
    v[-1].assign_sub(2.0)
    assert v.numpy().tolist() == [6, 7, 7]
    v[...].assign(0)
    v[tf.constant(1)].assign(4.0)
    v[v > 3.0].assign([9.0])
    assert v.numpy().tolist() == [0, 9, 0]
    v[tf.constant([0, 2])].assign([1.0, 2.0])
    assert v.numpy().tolist() == [1, 9, 2]


def test_matrices_and_new_axes() -> None:
    m = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    m[:, None, 0].assign([[8.0], [9.0]])
    m[1, 1].assign(0.0)
    assert m.numpy().tolist() == [[8, 2], [9, 0]]


def test_the_value_is_broadcast() -> None:
    m = tf.Variable(tf.zeros([2, 3]))
    m[:, 1:].assign(7.0)
    m[0].assign([1.0])
    assert m.numpy().tolist() == [[1, 1, 1], [0, 7, 7]]


def test_the_slice_itself_and_tensors_read_before_do_not_change() -> None:
    v = tf.Variable([1.0, 2.0])
    piece, whole = v[0], v.value()
    piece.assign(5.0)
    assert piece.numpy() == 1 and whole.numpy().tolist() == [1, 2]


def test_slices_are_plain_tensors_for_the_tape() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v[0] * v[1]
        v[0].assign(10.0)
        y = y * v[0]
    assert type(v[0]) is type(tf.constant(1.0))
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), [20 + 2, 10])


def test_only_slices_of_variables_can_be_assigned_to() -> None:
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    for tensor in (x, x[0], v[0] + 1.0, v[:][0]):
        assert not hasattr(tensor, "assign")
    with pytest.raises(AttributeError, match=r"tf\.Variable"):
        x[0].assign(1.0)


def test_values_that_do_not_fit() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        v[1:].assign([1.0, 2.0, 3.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="cast"):
        v[0].assign(tf.constant(1))
    with pytest.raises(tf.errors.InvalidArgumentError):
        v[5].assign(1.0)
    assert v.numpy().tolist() == [1, 2, 3]


def test_strided_slice_of_a_variable() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    tf.strided_slice(v, [1], [3], var=v).assign([8.0, 9.0])
    assert v.numpy().tolist() == [1, 8, 9]

"""jacobian and batch_jacobian: values, shapes, structures, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_the_jacobian_of_a_linear_map_is_its_matrix() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.linalg.matvec(tf.constant(matrix), x)
    np.testing.assert_array_equal(tape.jacobian(y, x), matrix)


def test_shapes_are_joined() -> None:
    x, w = tf.Variable(np.ones((2, 3))), tf.Variable(np.ones((3, 4)))
    with tf.GradientTape() as tape:
        y = x @ w
    jx, jw = tape.jacobian(y, [x, w])
    assert jx.shape == (2, 4, 2, 3)
    assert jw.shape == (2, 4, 3, 4)
    np.testing.assert_array_equal(jx[0, 1, 0], np.ones(3))
    np.testing.assert_array_equal(jx[0, 1, 1], np.zeros(3))


def test_a_scalar_target_gives_the_gradient() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x ** 3)
    np.testing.assert_array_equal(tape.jacobian(y, x), [3.0, 12.0])


def test_hessian_and_newton_step() -> None:
    x = tf.Variable([1.0, -2.0], dtype=tf.float64)
    matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 0.5 * tf.reduce_sum(x * tf.linalg.matvec(tf.constant(matrix), x))
        g = inner.gradient(y, x)
    hessian = outer.jacobian(g, x)
    np.testing.assert_allclose(hessian, matrix)
    x.assign_sub(tf.linalg.matvec(tf.linalg.inv(hessian), g))
    np.testing.assert_allclose(x, [0.0, 0.0], atol=1e-12)


def test_the_jacobian_is_itself_recorded() -> None:
    x = tf.Variable([0.3, 0.4], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.sin(x)
        j = inner.jacobian(y, x)
        total = tf.reduce_sum(j * j)
    np.testing.assert_allclose(outer.gradient(total, x), -np.sin([0.6, 0.8]))


def test_unconnected_and_structures() -> None:
    x, other = tf.Variable([1.0, 2.0]), tf.Variable([[3.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    found = tape.jacobian(y, {"a": x, "b": other})
    assert list(found) == ["a", "b"]
    assert found["b"] is None
    zeros = tape.jacobian(y, other, unconnected_gradients="zero")
    assert zeros.shape == (2, 1, 1)


def test_gathered_sources_give_dense_jacobians() -> None:
    table = tf.Variable(np.ones((4, 2)))
    with tf.GradientTape() as tape:
        y = tf.gather(table, [1, 1, 3])
    j = tape.jacobian(y, table)
    assert j.shape == (3, 2, 4, 2)
    assert float(j[0, 1, 1, 1]) == 1.0
    assert float(tf.reduce_sum(j)) == 6.0


def test_no_pfor_needs_a_persistent_tape() -> None:
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(RuntimeError, match="persistent"):
        tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_array_equal(tape.jacobian(y, x), [[2.0]])


@pytest.mark.parametrize("target", [None, [], [1.0], 3.0, "y"])
def test_one_tensor_is_asked_for(target: object) -> None:
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(TypeError):
        tape.jacobian(target, x)
    assert tape.jacobian(y, x).shape == (1, 1)


def test_empty_targets() -> None:
    x = tf.Variable(np.ones((0, 2)))
    with tf.GradientTape() as tape:
        y = x * 2.0
    assert tape.jacobian(y, x).shape == (0, 2, 0, 2)


# -------------------------------------------------------------------------- batch_jacobian


def test_batch_jacobian_is_the_diagonal_of_the_jacobian() -> None:
    rng = np.random.default_rng(0)
    x, w = tf.Variable(rng.standard_normal((5, 3))), tf.constant(rng.standard_normal((3, 4)))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.tanh(x @ w)
    full, batch = tape.jacobian(y, x).numpy(), tape.batch_jacobian(y, x).numpy()
    assert batch.shape == (5, 4, 3)
    np.testing.assert_allclose(batch, full[np.arange(5), :, np.arange(5), :])


def test_batch_jacobian_of_images() -> None:
    x = tf.Variable(np.random.default_rng(1).standard_normal((2, 3, 4)))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x, axis=2)
    found = tape.batch_jacobian(y, x)
    assert found.shape == (2, 3, 3, 4)
    np.testing.assert_allclose(found[1, 2, 2], 2 * x[1, 2])
    np.testing.assert_allclose(found[1, 2, 1], np.zeros(4))


def test_batch_jacobian_is_recorded() -> None:
    x = tf.Variable(np.ones((2, 2)) * 0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x ** 3
        j = inner.batch_jacobian(y, x)
    np.testing.assert_allclose(outer.gradient(j, x), 6 * 0.5 * np.ones((2, 2)))


def test_batch_jacobian_refuses() -> None:
    x = tf.Variable(np.ones((2, 3)))
    with tf.GradientTape(persistent=True) as tape:
        flat, short, y = tf.reduce_sum(x, axis=1), (x * 2.0)[:1], x * x
    with pytest.raises(ValueError, match="rank at least 2"):
        tape.batch_jacobian(flat, x)
    with pytest.raises(ValueError, match="Need first dimension"):
        tape.batch_jacobian(short, x)
    with pytest.raises(TypeError):
        tape.batch_jacobian([y], x)
    assert tape.batch_jacobian(y, x).shape == (2, 3, 3)


def test_batch_jacobian_unconnected_is_zeros() -> None:
    x, other = tf.Variable(np.ones((2, 3))), tf.Variable(np.ones((2, 1)))
    with tf.GradientTape() as tape:
        y = other * 2.0
    np.testing.assert_array_equal(tape.batch_jacobian(y, x), np.zeros((2, 1, 3)))

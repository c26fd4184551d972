"""Jacobians: every output by every input, per sample of a batch, and Hessians."""

from __future__ import annotations

import numpy as np

import gtape as tf


def jacobian_of_a_vector() -> None:
    """y_i = x_i^2 has the diagonal Jacobian diag(2 x)."""
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    jacobian = tape.jacobian(y, x)
    print("jacobian of x^2:", jacobian.numpy().tolist())
    np.testing.assert_allclose(jacobian, np.diag([2.0, 4.0, 6.0]))


def jacobian_of_a_layer() -> None:
    """The shape is that of the output, followed by that of the source."""
    x = tf.constant([[1.0, -2.0, 0.5]])
    weight = tf.Variable(tf.ones((3, 2)))
    with tf.GradientTape() as tape:
        y = tf.tanh(x @ weight)
    jacobian = tape.jacobian(y, weight)
    print("jacobian of a layer:", tuple(y.shape), "by", tuple(weight.shape))
    assert tuple(jacobian.shape) == (1, 2, 3, 2)
    slope = 1 - np.tanh(-0.5) ** 2
    np.testing.assert_allclose(jacobian[0, 1, :, 1], slope * x.numpy()[0], rtol=1e-6)
    np.testing.assert_allclose(jacobian[0, 1, :, 0], np.zeros(3))


def jacobian_per_sample() -> None:
    """batch_jacobian: row i of the answer is d y[i] / d x[i], without the crossed samples."""
    matrix = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = tf.constant([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = (x @ matrix) ** 2
    jacobian = tape.batch_jacobian(y, x)
    expected = 2 * (x.numpy() @ matrix.numpy())[:, :, None] * matrix.numpy().T[None]
    assert tuple(jacobian.shape) == (2, 2, 3)
    np.testing.assert_allclose(jacobian, expected)


def hessian_of_a_quadratic() -> None:
    """The Hessian is the Jacobian of the gradient: that of x'Ax/2 is (A + A')/2."""
    matrix = np.array([[2.0, 1.0], [0.0, 3.0]], np.float32)
    x = tf.Variable([1.0, -1.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x * tf.linalg.matvec(matrix, x)) / 2
        gradient = inner.gradient(y, x)
    hessian = outer.jacobian(gradient, x)
    print("hessian:", hessian.numpy().tolist())
    np.testing.assert_allclose(hessian, (matrix + matrix.T) / 2)


def newton_step() -> None:
    """One Newton step solves a quadratic: x - H^-1 g is the minimum, wherever it starts."""
    target = tf.constant([3.0, -1.0])
    x = tf.Variable([10.0, 10.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            distance = x - target
            loss = distance[0] ** 2 + 5.0 * distance[1] ** 2 + distance[0] * distance[1]
        gradient = inner.gradient(loss, x)
    hessian = outer.jacobian(gradient, x)
    step = tf.linalg.solve(hessian, gradient[:, tf.newaxis])
    x.assign_sub(step[:, 0])
    print("minimum after one Newton step:", x.numpy().tolist())
    np.testing.assert_allclose(x, target, atol=1e-5)


if __name__ == "__main__":
    jacobian_of_a_vector()
    jacobian_of_a_layer()
    jacobian_per_sample()
    hessian_of_a_quadratic()
    newton_step()

"""What a tape watches: trainable variables by itself, everything else when told."""

from __future__ import annotations

import numpy as np

import gtape as tf


def what_is_watched() -> None:
    """Of four sources only the trainable variable has a gradient."""
    trainable = tf.Variable(3.0, name="trainable")
    frozen = tf.Variable(3.0, name="frozen", trainable=False)
    computed = tf.Variable(2.0, name="computed") + 1.0
    constant = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = trainable**2 + frozen**2 + computed**2 + constant**2
    gradients = tape.gradient(y, [trainable, frozen, computed, constant])
    watched = [variable.name for variable in tape.watched_variables()]
    print("watched:", watched)
    assert gradients[0].numpy() == 6.0
    assert gradients[1:] == [None, None, None]
    assert watched == ["trainable:0"]


def watching_a_constant() -> None:
    """`watch` makes any floating tensor a source."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    assert tape.gradient(y, x).numpy() == 6.0


def watching_a_frozen_variable() -> None:
    """A variable that is not trainable can be watched by hand."""
    x = tf.Variable(5.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    np.testing.assert_allclose(tape.gradient(y, x), 75.0, rtol=1e-6)


def choosing_by_hand() -> None:
    """With watch_accessed_variables=False only what is named is watched."""
    ignored, chosen = tf.Variable(0.0), tf.Variable(10.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(chosen)
        y = tf.sin(ignored) + tf.nn.softplus(chosen)
    gradients = tape.gradient(y, {"ignored": ignored, "chosen": chosen})
    print("softplus'(10):", gradients["chosen"].numpy())
    assert gradients["ignored"] is None
    np.testing.assert_allclose(gradients["chosen"], 1 / (1 + np.exp(-10.0)), rtol=1e-6)


def stopping() -> None:
    """stop_gradient keeps the value and cuts the path: only the second x counts."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x**2) + x
    assert y.numpy() == 6.0
    assert tape.gradient(y, x).numpy() == 1.0


def pausing() -> None:
    """Inside stop_recording the tape looks away: z is a constant to it."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
        with tape.stop_recording():
            z = x**3
        total = y + z
    assert total.numpy() == 36.0
    assert tape.gradient(total, x).numpy() == 6.0


def integers() -> None:
    """Whole numbers have no derivative; a dtype makes them floating."""
    x = tf.Variable(30, dtype=tf.float32)
    with tf.GradientTape() as tape:
        y = x**3
    np.testing.assert_allclose(tape.gradient(y, x), 2700.0, rtol=1e-6)


def zeros_instead_of_none() -> None:
    """Where nothing connects, zeros of the source's shape can be had instead of None."""
    x, y = tf.Variable([2.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = y**2
    assert tape.gradient(z, x) is None
    zeros = tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    np.testing.assert_array_equal(zeros, [0.0, 0.0])


if __name__ == "__main__":
    what_is_watched()
    watching_a_constant()
    watching_a_frozen_variable()
    choosing_by_hand()
    stopping()
    pausing()
    integers()
    zeros_instead_of_none()

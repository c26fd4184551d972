"""Forward mode: Jacobian-vector products computed along with the values."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.autodiff import ForwardAccumulator


def test_a_directional_derivative() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    with ForwardAccumulator(x, tf.constant([1.0, 0.0, -1.0])) as acc:
        y = tf.reduce_sum(x * x)
    assert float(acc.jvp(y)) == 2.0 - 6.0


def test_it_agrees_with_reverse_mode() -> None:
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.standard_normal((3, 4)))
    x = tf.constant(rng.standard_normal((5, 3)))
    t = rng.standard_normal((3, 4))

    def f() -> tf.Tensor:
        h = tf.nn.relu(x @ w)
        return tf.reduce_logsumexp(h + tf.sin(h), axis=1)

    with ForwardAccumulator(w, tf.constant(t)) as acc:
        y = f()
    with tf.GradientTape() as tape:
        y = f()
    wanted = np.tensordot(tape.jacobian(y, w).numpy(), t, 2)
    with ForwardAccumulator(w, tf.constant(t)) as acc:
        y = f()
    np.testing.assert_allclose(acc.jvp(y), wanted)


def test_several_primals_in_a_structure() -> None:
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with ForwardAccumulator({"x": x, "y": [y]}, {"x": tf.constant(1.0), "y": [tf.constant(10.0)]},
                            ) as acc:
        z = x * y
        w = z + x
    assert [float(p) for p in acc.jvp([z, w])] == [23.0, 24.0]


def test_a_primal_has_its_tangent_and_strangers_none() -> None:
    x, stranger = tf.constant(2.0), tf.constant([1.0, 2.0])
    with ForwardAccumulator(x, tf.constant(5.0)) as acc:
        y = x * 2.0
    assert float(acc.jvp(x)) == 5.0
    assert float(acc.jvp(y)) == 10.0
    assert acc.jvp(stranger) is None
    np.testing.assert_array_equal(acc.jvp(stranger, unconnected_gradients="zero"), [0.0, 0.0])


def test_hessian_vector_product_forward_over_reverse() -> None:
    x = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    v = tf.constant([1.0, -1.0, 0.5], dtype=tf.float64)
    with ForwardAccumulator(x, v) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x ** 3)
        g = tape.gradient(y, x)
    np.testing.assert_allclose(acc.jvp(g), 6 * np.array([1.0, 2.0, 3.0]) * v.numpy())


def test_second_order_by_nested_accumulators() -> None:
    x = tf.constant(0.7, dtype=tf.float64)
    one = tf.constant(1.0, dtype=tf.float64)
    with ForwardAccumulator(x, one) as outer:
        with ForwardAccumulator(x, one) as inner:
            y = tf.sin(x) * x
        slope = inner.jvp(y)
    assert float(slope) == pytest.approx(np.cos(0.7) * 0.7 + np.sin(0.7))
    assert float(outer.jvp(slope)) == pytest.approx(2 * np.cos(0.7) - 0.7 * np.sin(0.7))


def test_reverse_over_forward() -> None:
    x = tf.Variable(0.7, dtype=tf.float64)
    with tf.GradientTape() as tape:
        with ForwardAccumulator(x, tf.constant(1.0, dtype=tf.float64)) as acc:
            y = x ** 3
        slope = acc.jvp(y)
    assert float(tape.gradient(slope, x)) == pytest.approx(6 * 0.7)


def test_through_the_sparse_gradient_of_a_gather() -> None:
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    tangent = np.arange(6.0)[::-1].reshape(3, 2)
    with ForwardAccumulator(table, tf.constant(tangent)) as acc:
        y = tf.gather(table, [2, 0, 2])
        z = tf.reduce_sum(y * y)
    np.testing.assert_array_equal(acc.jvp(y), tangent[[2, 0, 2]])
    assert float(acc.jvp(z)) == 2 * np.sum(table.numpy()[[2, 0, 2]] * tangent[[2, 0, 2]])


def test_an_accumulator_can_go_on() -> None:
    x = tf.constant(2.0)
    acc = ForwardAccumulator(x, tf.constant(1.0))
    with acc:
        y = x * x
    outside = y * x
    with acc:
        z = y * x
    assert float(acc.jvp(z)) == 12.0
    assert acc.jvp(outside) is None
    with acc, pytest.raises(ValueError, match="already recording"):
        acc.__enter__()


@pytest.mark.parametrize("primals, tangents", [
    ([1.0, 1.0], 1.0), ({"a": 1.0}, {"b": 1.0}), (1.0, [1.0, 2.0])])
def test_structures_must_match(primals: object, tangents: object) -> None:
    make = lambda s: tf.nest.map_structure(tf.constant, s)
    with pytest.raises(ValueError):
        ForwardAccumulator(make(primals), make(tangents))


def test_shapes_dtypes_and_doubles_are_checked() -> None:
    x = tf.constant([1.0, 2.0])
    for tangent in (tf.constant(1.0), tf.constant([1.0, 2.0, 3.0]),
                    tf.constant([1.0, 2.0], tf.float64)):
        with pytest.raises(ValueError, match="tangent 0"):
            ForwardAccumulator(x, tangent)
    with pytest.raises(ValueError, match="twice"):
        ForwardAccumulator([x, x], [x, x])
    with pytest.raises(TypeError):
        ForwardAccumulator(3.0, 1.0)


def test_nothing_is_kept_without_a_tangent() -> None:
    x = tf.Variable(2.0)
    with ForwardAccumulator(x, tf.constant(1.0)) as acc:
        x.assign(5.0)
        y = x * x
        cut = tf.stop_gradient(y) + tf.floor(x)
    assert float(acc.jvp(y)) == 10.0
    assert acc.jvp(cut) is None


def test_a_tape_stopped_and_resumed_still_sees_the_tangents_inside_it() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as forward:
            with tape.stop_recording():
                x * 5.0
            y = x ** 3
            slope = forward.jvp(y)
    assert tape.gradient(slope, x).numpy() == 12.0

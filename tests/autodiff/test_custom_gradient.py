"""Backward rules given by users: custom_gradient, recompute_grad, RegisterGradient and kin."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import gtape as tf
from gtape.autodiff import backward


def _log1pexp() -> object:
    @tf.custom_gradient
    def log1pexp(x):  # type: ignore[no-untyped-def]
        """log(1 + e^x)."""
        e = tf.exp(x)

        def grad(upstream):  # type: ignore[no-untyped-def]
            return upstream * (1.0 - 1.0 / (1.0 + e))

        return tf.math.log(1.0 + e), grad

    return log1pexp


def test_the_stable_gradient_replaces_the_computed_one() -> None:
    f, x = _log1pexp(), tf.constant(100.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        plain, custom = tf.math.log(1.0 + tf.exp(x)), f(x)  # type: ignore[operator]
    assert np.isnan(float(tape.gradient(plain, x)))
    assert float(tape.gradient(custom, x)) == 1.0
    assert f.__name__ == "log1pexp" and f.__doc__ == "log(1 + e^x)."  # type: ignore[attr-defined]


def test_the_second_order_differentiates_grad_fn() -> None:
    f, x = _log1pexp(), tf.Variable(0.3, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)  # type: ignore[operator]
        g = inner.gradient(y, x)
    s = 1 / (1 + np.exp(-0.3))
    assert float(g) == pytest.approx(s)
    # grad_fn uses e, which was computed in the forward pass: the outer tape knows that too.
    assert float(outer.gradient(g, x)) == pytest.approx(s * (1 - s))


def test_several_arguments_and_results() -> None:
    seen = []

    @tf.custom_gradient
    def f(a, b):  # type: ignore[no-untyped-def]
        def grad(du, dv):  # type: ignore[no-untyped-def]
            seen.append((float(du), float(dv)))
            return du * 10.0, dv * 100.0

        return (a + b, a * b), grad

    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        u, v = f(a, b)
    da, db = tape.gradient([u, v], [a, b])
    assert (float(da), float(db)) == (10.0, 100.0)
    da, db = tape.gradient(v, [a, b])
    assert seen == [(1.0, 1.0), (0.0, 1.0)]
    assert (float(da), float(db)) == (0.0, 100.0)


def test_variables_read_inside_must_be_answered_for() -> None:
    w = tf.Variable(5.0)

    @tf.custom_gradient
    def silent(x):  # type: ignore[no-untyped-def]
        return x * w, lambda g: g

    @tf.custom_gradient
    def honest(x):  # type: ignore[no-untyped-def]
        def grad(g, variables=None):  # type: ignore[no-untyped-def]
            assert [v.ref() for v in variables] == [w.ref()]
            return g * 2.0, [g * 3.0]

        return x * w, grad

    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        with pytest.raises(TypeError, match="variables"):
            silent(x)
        y = honest(x)
    dx, dw = tape.gradient(y, [x, w])
    assert (float(dx), float(dw)) == (2.0, 3.0)


@pytest.mark.parametrize("parts, error", [
    (lambda g: (g, g), ValueError), (lambda g: tf.ones([2, 2]), ValueError),
    (lambda g: tf.cast(g, tf.float64), ValueError)])
def test_gradients_of_the_wrong_kind_are_errors(parts: object, error: type[Exception]) -> None:
    @tf.custom_gradient
    def f(x):  # type: ignore[no-untyped-def]
        return x * 1.0, parts

    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = f(x)
    with pytest.raises(error, match="gradient"):
        tape.gradient(y, x)


def test_what_must_be_returned() -> None:
    with pytest.raises(TypeError, match="must return"):
        tf.custom_gradient(lambda x: x)(tf.constant(1.0))
    with pytest.raises(TypeError, match="callable"):
        tf.custom_gradient(lambda x: (x, 3))(tf.constant(1.0))
    with pytest.raises(ValueError, match="None"):
        tf.custom_gradient(lambda x: (None, lambda g: g))(tf.constant(1.0))


def test_keywords_are_arguments_too() -> None:
    @tf.custom_gradient
    def f(x, scale):  # type: ignore[no-untyped-def]
        return x * scale, lambda g: (g * 7.0, g * 8.0)

    x, s = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(scale=s, x=x)
    assert [float(g) for g in tape.gradient(y, [x, s])] == [7.0, 8.0]


def test_a_nested_custom_gradient_overrides_the_second_order() -> None:
    @tf.custom_gradient
    def first(x):  # type: ignore[no-untyped-def]
        @tf.custom_gradient
        def slope(x):  # type: ignore[no-untyped-def]
            return tf.cos(x), lambda g: g * 42.0

        return tf.sin(x), lambda g: g * slope(x)

    x = tf.Variable(0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = first(x)
        g = inner.gradient(y, x)
    assert float(g) == pytest.approx(np.cos(0.5))
    assert float(outer.gradient(g, x)) == 42.0


def test_clipping_gradients_on_the_way_back() -> None:
    @tf.custom_gradient
    def clip(x):  # type: ignore[no-untyped-def]
        return tf.identity(x), lambda g: tf.clip_by_norm(g, 0.5)

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = clip(v * v)
    assert float(tape.gradient(y, v)) == 2.0


def test_grad_pass_through_is_a_straight_through_estimate() -> None:
    x = tf.Variable([0.2, 1.7])
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(tf.round)(x)
        z = tf.reduce_sum(y * y)
    np.testing.assert_array_equal(y, [0.0, 2.0])
    np.testing.assert_array_equal(tape.gradient(z, x), [0.0, 4.0])


def test_stop_gradient_gives_a_new_constant() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * tf.stop_gradient(x)
    assert float(tape.gradient(y, x)) == 3.0


# -------------------------------------------------------------------------- recompute_grad


def test_recompute_grad_keeps_the_arguments_only() -> None:
    inside = []
    w = tf.Variable([2.0, 3.0])

    @tf.recompute_grad
    def block(x):  # type: ignore[no-untyped-def]
        h = tf.exp(x * w)
        inside.append(weakref.ref(h))
        return tf.tanh(h)

    x = tf.Variable([0.1, 0.2])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(block(x))
    assert inside[0]() is None
    dx, dw = tape.gradient(y, [x, w])
    assert len(inside) == 2
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(tf.exp(x * w)))
    for got, wanted in zip((dx, dw), tape.gradient(y, [x, w])):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_recompute_grad_answers_zero_where_nothing_connects() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda a, b: a * 2.0)(a, b)
    assert [float(g) for g in tape.gradient(y, [a, b])] == [2.0, 0.0]


# -------------------------------------------------------------------------- registered gradients


def test_an_op_without_a_gradient_is_a_lookup_error_when_it_is_asked_for() -> None:
    x = tf.Variable([5.0, 7.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.truncatemod(x, 3.0)
        fine = x * 2.0
    with pytest.raises(LookupError, match="gradient registry has no entry for: TruncateMod"):
        tape.gradient(y, x)
    np.testing.assert_array_equal(tape.gradient(fine, x), [2.0, 2.0])


def test_branches_that_lead_to_no_source_are_not_walked() -> None:
    x, other = tf.Variable(5.0), tf.Variable(7.0)
    with tf.GradientTape() as tape:
        y = x * 2.0 + tf.truncatemod(other, 3.0)
    assert float(tape.gradient(y, x)) == 2.0


def test_a_gradient_can_be_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward, "_registered", {})

    @tf.RegisterGradient("TruncateMod")
    def slope(op, g):  # type: ignore[no-untyped-def]
        assert op.type == "TruncateMod"
        return g * 10.0, None

    with pytest.raises(KeyError, match="registered already"):
        tf.RegisterGradient("TruncateMod")(slope)
    with pytest.raises(KeyError):
        tf.RegisterGradient("Exp")(slope)
    with pytest.raises(TypeError):
        tf.RegisterGradient(3)
    with pytest.raises(TypeError):
        tf.no_gradient(None)

"""What a tape watches: variables by themselves, tensors when asked, and how often it says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gtape as tf
from gtape.errors import NonFloatWarning


def test_trainable_variables_are_watched_when_they_are_read() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    frozen = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = b * a + frozen
    assert [v is w for v, w in zip(tape.watched_variables(), (a, b))] == [True, True]
    assert len(tape.watched_variables()) == 2
    da, db, df = tape.gradient(y, [a, b, frozen])
    assert (float(da), float(db), df) == (2.0, 1.0, None)


def test_watched_variables_come_in_the_order_of_creation_and_stay_after_the_gradient() -> None:
    first, second, third = (tf.Variable(float(i)) for i in range(3))
    with tf.GradientTape() as tape:
        y = third * second * first
    tape.gradient(y, first)
    assert [v.ref() == w.ref() for v, w in zip(tape.watched_variables(), (first, second, third))
            ] == [True] * 3


@pytest.mark.parametrize("read", [
    lambda v: v.value(), lambda v: v.read_value(), lambda v: v + 1.0, lambda v: v.numpy(),
    lambda v: str(v), lambda v: float(v), lambda v: v.assign(2.0), lambda v: tf.identity(v),
    lambda v: v.assign_add(1.0)])
def test_every_way_of_reading_counts(read: object) -> None:
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        read(v)  # type: ignore[operator]
    assert len(tape.watched_variables()) == 1


@pytest.mark.parametrize("look", [
    lambda v: v.shape, lambda v: v.dtype, lambda v: v.name, lambda v: v.device,
    lambda v: v.assign(2.0, read_value=False), lambda v: tf.stop_gradient(v), lambda v: v.ref()])
def test_looking_at_the_outside_does_not(look: object) -> None:
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        look(v)  # type: ignore[operator]
    assert tape.watched_variables() == ()


def test_automatic_watching_can_be_turned_off() -> None:
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * b
    da, db = tape.gradient(y, [a, b])
    assert float(da) == 3.0
    assert db is None
    assert len(tape.watched_variables()) == 1


def test_an_untrainable_variable_can_be_watched() -> None:
    frozen = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(frozen)
        y = frozen * frozen
    assert float(tape.gradient(y, frozen)) == 6.0


def test_watch_takes_nests_and_returns_none() -> None:
    x, v = tf.constant(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        assert tape.watch({"a": [x, (v,)]}) is None
        y = x * v
    assert [float(g) for g in tape.gradient(y, [x, v])] == [3.0, 2.0]


@pytest.mark.parametrize("value", [1.0, "x", None, np.ones(2), [tf.constant(1.0), 2.0]])
def test_watching_something_else_names_its_type(value: object) -> None:
    with tf.GradientTape() as tape:
        with pytest.raises(ValueError, match=r"takes Tensors.*type '\w+'"):
            tape.watch(value)
        x = tf.constant(2.0)
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0


def test_watching_an_integer_warns_at_the_users_line() -> None:
    with tf.GradientTape() as tape, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tape.watch(tf.constant(3))
    assert [w.category for w in seen] == [NonFloatWarning]
    assert "must be floating" in str(seen[0].message)
    assert seen[0].filename == __file__


def test_asking_for_the_gradient_of_an_integer_warns() -> None:
    x = tf.Variable(30)
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) * 2.0
    with pytest.warns(NonFloatWarning, match="source tensor must be floating"):
        assert tape.gradient(y, x) is None


def test_watch_without_an_active_tape_is_honoured_when_the_tape_goes_on() -> None:
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    with tape:
        pass
    tape.watch(x)
    with tape:
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_watching_twice_changes_nothing() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.watch([x, x])
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


# -------------------------------------------------------------------------- assignment


def test_each_read_keeps_its_value_and_all_reads_add_up() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(5.0)
        y = y + v * v
    assert float(y) == 29.0
    assert float(tape.gradient(y, v)) == 14.0


def test_no_gradient_flows_through_an_assignment() -> None:
    v, x = tf.Variable(1.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        v.assign(x * x)
        y = v * 2.0
    dv, dx = tape.gradient(y, [v, x])
    assert float(dv) == 2.0
    assert dx is None


def test_assigning_after_the_forward_pass_does_not_change_the_gradient() -> None:
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = v * v
    v.assign([100.0, 100.0])
    np.testing.assert_allclose(tape.gradient(y, v), [4.0, 6.0])


def test_the_numpy_array_a_tensor_was_made_of_can_change() -> None:
    array = np.array([2.0, 3.0], np.float32)
    x = tf.constant(array)
    v = tf.Variable(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x + v * v
    array[:] = 100.0
    v.numpy()[:] = 100.0
    dx, dv = tape.gradient(y, [x, v])
    np.testing.assert_allclose(dx, [4.0, 6.0])
    np.testing.assert_allclose(dv, [4.0, 6.0])


def test_what_an_assignment_returns_reads_the_variable() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v.assign(4.0) * 3.0
    assert float(y) == 12.0
    assert float(tape.gradient(y, v)) == 3.0

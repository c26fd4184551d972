"""where in both forms; cond, case and switch_case."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf


def test_where_gives_each_side_its_gradient():
    x, y = tf.constant([1.0, 2.0]), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.where([True, False], x, y)
    assert z.numpy().tolist() == [1, 5]
    assert [g.numpy().tolist() for g in tape.gradient(z, [x, y])] == [[1, 0], 1]


@pytest.mark.parametrize("x, y, dtype", [
    (1.0, 2, tf.float32), (1, 2, tf.int32), (tf.constant(1.0, tf.float64), 2, tf.float64),
    (2, tf.constant(1.0, tf.float64), tf.float64), (np.float64(1), 0.0, tf.float64)])
def test_where_dtypes(x, y, dtype):
    assert tf.where([True, False], x, y).dtype == dtype


def test_where_positions():
    found = tf.where([[1.0, 0.0], [0.0, 2.0]])
    assert found.dtype == tf.int64 and found.numpy().tolist() == [[0, 0], [1, 1]]
    assert tf.where(tf.zeros((0, 2))).shape == (0, 2)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.where(x > 1.5), tf.float32)
    assert tape.gradient(y, x) is None


def test_where_errors():
    with pytest.raises(ValueError, match="both"):
        tf.where([True], 1.0)
    with pytest.raises(TypeError, match="bool"):
        tf.where([1, 0], 2.0, 3.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype"):
        tf.where(True, tf.constant(1.0), tf.constant(1))


def test_cond_runs_one_function():
    ran = []
    assert tf.cond(tf.constant(False), lambda: ran.append(1), lambda: "no") == "no"
    assert not ran
    assert tf.cond(True, lambda: "yes", lambda: "no") == "yes"
    with pytest.raises(TypeError, match="true_fn"):
        tf.cond(True, 1, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2)


def test_case_takes_the_first():
    pairs = [(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2), (True, lambda: 3)]
    assert tf.case(pairs) == 2
    assert tf.case(pairs[:1], default=lambda: 9) == 9
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclude"):
        tf.case(pairs, exclusive=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="default"):
        tf.case(pairs[:1])
    with pytest.raises(TypeError, match="pairs"):
        tf.case([1])


@pytest.mark.parametrize("index, wanted", [(0, "a"), (1, "b"), (7, "b"), (-1, "b")])
def test_switch_case(index, wanted):
    assert tf.switch_case(tf.constant(index), [lambda: "a", lambda: "b"]) == wanted
    assert tf.switch_case(index, {1: lambda: "b", 0: lambda: "a"}) == wanted


def test_switch_case_errors():
    assert tf.switch_case(5, [lambda: 1], default=lambda: 2) == 2
    with pytest.raises(ValueError, match="keys"):
        tf.switch_case(0, {0: lambda: 1, 2: lambda: 2})
    with pytest.raises(ValueError, match="none"):
        tf.switch_case(0, [])
    with pytest.raises(TypeError):
        tf.switch_case(0.5, [lambda: 1])

"""Python integers beyond int64, and None among numbers."""

from __future__ import annotations

import pytest

import gtape as tf


@pytest.mark.parametrize("make", [lambda: tf.constant(2**70, tf.float32),
                                  lambda: tf.Variable(1.0) * 2**70,
                                  lambda: tf.constant(1.0) * 2**70,
                                  lambda: tf.constant([2**70], tf.float64)])
def test_floats_hold_them(make: object) -> None:
    assert float(tf.reduce_sum(make())) == 2.0**70


@pytest.mark.parametrize("value", [2**70, [1, -(2**65)]])
@pytest.mark.parametrize("dtype", [None, tf.int64])
def test_integers_do_not(value: object, dtype: object) -> None:
    with pytest.raises(ValueError, match="an integer must lie in"):
        tf.constant(value, dtype)


def test_beyond_floats() -> None:
    with pytest.raises(ValueError, match="beyond float64's range"):
        tf.constant(10**400, tf.float32)


@pytest.mark.parametrize("dtype", [None, tf.float32])
@pytest.mark.parametrize("value", [[1.0, None], [None, 1.0], [[1.0], [None]]])
def test_none_among_numbers_is_named(value: object, dtype: object) -> None:
    with pytest.raises(ValueError, match="NoneType"):
        tf.constant(value, dtype)


def test_a_subclass_of_variable_says_what_to_use() -> None:
    class Own(tf.Variable):
        pass

    with pytest.raises(NotImplementedError, match=r"tf\.Module"):
        Own(3.0)

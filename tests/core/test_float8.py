"""Floats of one byte: stored, moved and cast; numbers of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

_X = [0.1, 1.3, 1000.0, -7.7, 500.0, -1e6, np.nan, np.inf]
_ROUNDED = {
    "float8_e4m3fn": [0.1015625, 1.25, np.nan, -7.5, np.nan, np.nan, np.nan, np.nan],
    "float8_e5m2": [0.09375, 1.25, 1024.0, -8.0, 512.0, -np.inf, np.nan, np.inf]}


@pytest.fixture(params=sorted(_ROUNDED))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_their_names_and_ranges() -> None:
    narrow, wide = tf.as_dtype("float8_e4m3fn"), tf.as_dtype("float8_e5m2")
    assert (narrow.max, narrow.min, wide.max) == (448, -448, 57344)
    assert narrow.is_floating and narrow.size == 1 and repr(narrow) == "tf.float8_e4m3fn"
    assert tf.dtypes.experimental.float8_e5m2 is wide
    assert tf.as_dtype(np.asarray(tf.cast(1.0, narrow)).dtype) is narrow
    assert not narrow.is_differentiable


def test_casts_round_to_the_nearest(name: str) -> None:
    x = tf.cast(_X, name)
    assert x.dtype == name and x.numpy().dtype.name == name
    np.testing.assert_array_equal(tf.cast(x, tf.float32).numpy(), _ROUNDED[name])
    np.testing.assert_array_equal(tf.cast(x, tf.bfloat16).numpy().astype(np.float32),
                                  _ROUNDED[name])


def test_saturating_casts_stay_finite(name: str) -> None:
    limit = float(tf.as_dtype(name).max)
    made = tf.cast(tf.saturate_cast(_X, name), tf.float32).numpy()
    assert made[[5, 7]].tolist() == [-limit, limit]


def test_they_are_moved_about(name: str) -> None:
    x = tf.cast(_X, name)
    turned = tf.transpose(tf.reshape(x, (4, 2)))
    assert turned.dtype == name and turned.shape == (2, 4)
    assert tf.cast(tf.gather(x, [1, 3]), tf.float32).numpy().tolist() == [1.25,
                                                                         _ROUNDED[name][3]]
    assert tf.concat([x, x], 0).shape == 16
    assert tf.Variable(x).dtype == name


def test_arithmetic_on_them_is_refused(name: str) -> None:
    x = tf.cast([1.0, 2.0], name)
    for wrong in (lambda: x + x, lambda: tf.reduce_sum(x), lambda: tf.matmul([x], [x])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="numbers"):
            wrong()


def test_a_function_casts_there_and_back(name: str) -> None:
    there_and_back = tf.function(lambda x: tf.cast(tf.cast(x, name), tf.float32) * 2)
    np.testing.assert_array_equal(there_and_back(tf.constant(_X)).numpy(),
                                  2 * np.array(_ROUNDED[name], np.float32))


def test_no_gradient_goes_through_them(name: str) -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, name), tf.float32)
    assert tape.gradient(y, x) is None

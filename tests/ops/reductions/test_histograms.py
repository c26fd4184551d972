"""Histograms and bincount."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf

_X = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]


def test_bins() -> None:
    assert tf.histogram_fixed_width(_X, [0.0, 5.0], 5).numpy().tolist() == [2, 1, 1, 0, 2]
    bins = tf.histogram_fixed_width_bins(_X, [0.0, 5.0], 5, tf.int64)
    assert bins.numpy().tolist() == [0, 0, 1, 2, 4, 4] and bins.dtype == tf.int64
    assert tf.histogram_fixed_width([1, 2, 3], [0, 5], 5).numpy().tolist() == [0, 1, 1, 1, 0]
    assert tf.histogram_fixed_width(tf.zeros([0]), [0.0, 1.0], 2).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("bounds, bins", [([5.0, 0.0], 5), ([5.0, 5.0], 5), ([0.0, 5.0], 0),
                                          ([0.0], 5)])
def test_bins_that_do_not_fit(bounds: Any, bins: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.histogram_fixed_width([1.0], bounds, bins)


@pytest.mark.parametrize("options, wanted", [
    ({}, [0, 2, 1, 0, 0, 1]), ({"minlength": 7}, [0, 2, 1, 0, 0, 1, 0]),
    ({"maxlength": 3}, [0, 2, 1]), ({"weights": [0.5, 1.0, 2.0, 3.0]}, [0, 1.5, 2, 0, 0, 3]),
    ({"binary_output": True}, [0, 1, 1, 0, 0, 1])])
def test_bincount(options: Any, wanted: Any) -> None:
    assert tf.math.bincount([1, 1, 2, 5], **options).numpy().tolist() == wanted


def test_bincount_of_rows() -> None:
    m = [[1, 1], [2, 0]]
    assert tf.math.bincount(m).numpy().tolist() == [1, 2, 1]
    assert tf.math.bincount(m, axis=-1).numpy().tolist() == [[0, 2, 0], [1, 0, 1]]
    assert tf.math.bincount(m, axis=-1, maxlength=2).numpy().tolist() == [[0, 2], [1, 0]]
    assert tf.math.bincount([[3]], axis=-1).shape == [1, 4]
    weighted = tf.math.bincount(m, [[0.5, 0.5], [1.0, 2.0]], axis=-1)
    assert weighted.numpy().tolist() == [[0, 1, 0], [2, 0, 1]]
    assert tf.math.bincount(tf.zeros([0, 2], tf.int32), axis=-1).shape == [0, 0]


def test_weights_have_a_gradient() -> None:
    w = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = tf.math.bincount([0, 1, 0], w, maxlength=1) ** 2
    assert tape.gradient(y, w).numpy().tolist() == [8, 0, 8]


def test_bincount_errors() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.bincount([-1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.bincount([1, 2], [1.0])
    for options in ({"weights": [1.0], "binary_output": True}, {"axis": 1}):
        with pytest.raises(ValueError):
            tf.math.bincount([1], **options)

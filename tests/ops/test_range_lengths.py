"""How many numbers tf.range gives: TensorFlow 2.21's counts."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf


@pytest.mark.parametrize(("arguments", "dtype", "count"), [
    ((0.1, 1.1, 0.1), "float32", 10), ((0.1, 1.1, 0.1), "float64", 10),
    ((0.1, 1.1, 0.1), "float16", 10), ((0.1, 1.1, 0.1), "bfloat16", 10),
    ((0, 10, 0.7), "float64", 15), ((0.0, 0.7, 0.1), "float32", 7),
    ((1, 0, -0.25), "float32", 4), ((0, 10, 3), "int32", 4), ((5, 0, -2), "int32", 3)])
def test_lengths(arguments: Any, dtype: str, count: int) -> None:
    made = tf.range(*arguments, dtype=dtype)
    assert made.shape == (count,) and made.dtype.name == dtype


def test_a_step_that_leads_away_is_refused() -> None:
    for wrong in ((0.0, 1.0, -0.1), (0.0, float("inf"), 1.0), (0.0, 0.001, 0.0), (0, 1, 0)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.range(*wrong)

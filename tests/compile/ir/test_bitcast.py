"""bitcast in a compiled program: the same bytes, without a step in Python."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

pytestmark = pytest.mark.native


@pytest.mark.parametrize(("dtype", "to"), [
    (np.float32, tf.int32), (np.float64, tf.int64), (np.int16, tf.float16), (np.uint8, tf.int8)])
def test_bytes_stay_and_the_program_is_native(dtype: type, to: tf.DType) -> None:
    x = (np.random.default_rng(0).standard_normal((5, 7)) * 50).astype(dtype)
    cast = tf.function(lambda x: tf.bitcast(tf.transpose(x), to))
    made = cast(tf.constant(x)).numpy()
    np.testing.assert_array_equal(
        made.view(np.uint8), np.ascontiguousarray(x.T).view(to.as_numpy_dtype).view(np.uint8))
    assert "bitcast" in str(cast.inspect(tf.constant(x)))
    assert "host bitcast" not in str(cast.inspect(tf.constant(x)))

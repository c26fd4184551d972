"""tf.zeros_initializer and its like: values and dtypes as TensorFlow 2.21 gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf


@pytest.mark.parametrize("dtype", ["int32", "float64", "bool", "complex64", "float16"])
@pytest.mark.parametrize("made, value", [(tf.zeros_initializer, 0), (tf.ones_initializer, 1)])
def test_zeros_and_ones_of_every_number(made: Any, value: int, dtype: str) -> None:
    found = made()((2,), dtype=dtype)
    assert found.dtype == dtype
    assert found.numpy().tolist() == [value, value]
    assert made()(3).dtype == tf.float32 and made()(tf.TensorShape([2, 1])).shape == (2, 1)


def test_they_have_no_strings() -> None:
    for made in (tf.zeros_initializer(), tf.ones_initializer(), tf.random_uniform_initializer()):
        with pytest.raises(ValueError, match="dtype of this initializer"):
            made((2,), tf.string)


def test_constants_fill_or_are_laid_out() -> None:
    made = tf.constant_initializer
    assert made(3)((2,)).numpy().tolist() == [3, 3] and made(3)((2,)).dtype == tf.int32
    assert made([1, 2, 3, 4])((2, 2)).numpy().tolist() == [[1, 2], [3, 4]]
    assert made([[1, 2], [3, 4]])((4,)).numpy().tolist() == [1, 2, 3, 4]
    assert made([5])((2, 2)).numpy().tolist() == [[5, 5], [5, 5]]
    assert made("x")((2,)).numpy().tolist() == [b"x", b"x"]
    assert made(2.0)((1,), tf.bfloat16).dtype == tf.bfloat16
    with pytest.raises(TypeError, match="3 values"):
        made([1, 2, 3])((2, 2))
    with pytest.raises(TypeError):
        made(2.0)((2,), tf.int32)
    with pytest.raises(TypeError, match="EagerTensor"):
        made(tf.constant(3.0))


@pytest.mark.parametrize("made", [tf.random_normal_initializer, tf.random_uniform_initializer])
def test_draws_are_new_at_each_call_unless_seeded(made: Any) -> None:
    anew = made()
    assert not np.array_equal(anew((4,)), anew((4,)))
    seeded = made(seed=3)
    np.testing.assert_array_equal(seeded((4,)), seeded((4,)))
    np.testing.assert_array_equal(seeded((4,)), made(seed=3)((4,)))
    assert not np.array_equal(seeded((4,)), made(seed=4)((4,)))
    tf.random.set_seed(1)
    first = anew((4,)).numpy()
    tf.random.set_seed(1)
    np.testing.assert_array_equal(anew((4,)), first)


def test_the_distributions() -> None:
    normal = tf.random_normal_initializer(1.0, 2.0, seed=1)((20_000,), tf.float64).numpy()
    assert normal.dtype == np.float64
    assert abs(normal.mean() - 1) < 0.05 and abs(normal.std() - 2) < 0.05
    uniform = tf.random_uniform_initializer(-1.0, 3.0, seed=1)((20_000,)).numpy()
    assert -1 <= uniform.min() < -0.99 and 2.99 < uniform.max() < 3
    whole = tf.random_uniform_initializer(0, 4, seed=1)((1000,), tf.int32).numpy()
    assert set(whole.tolist()) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="floating; got int32"):
        tf.random_normal_initializer()((2,), tf.int32)


@pytest.mark.parametrize("made, config", [
    (tf.zeros_initializer(), {}), (tf.constant_initializer(2.0), {"value": 2.0}),
    (tf.random_normal_initializer(seed=3), {"mean": 0.0, "stddev": 0.05, "seed": 3}),
    (tf.random_uniform_initializer(0), {"minval": 0, "maxval": 0.05, "seed": None}),
], ids=lambda value: type(value).__name__)
def test_the_configurations_are_tensorflows(made: Any, config: dict[str, Any]) -> None:
    assert made.get_config() == config
    assert type(made).from_config({**config, "dtype": "float32"}).get_config() == config


def test_a_variable_takes_one_in_a_function() -> None:
    made = tf.Variable(lambda: tf.ones_initializer()((2,), dtype="float64"))
    assert made.dtype == tf.float64 and made.numpy().tolist() == [1, 1]

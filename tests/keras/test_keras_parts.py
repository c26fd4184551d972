"""Initializers, activations, regularizers, constraints, helpers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gtape as tf

keras = tf.keras
initializers = keras.initializers


def test_importing_keras_is_light():
    code = ("import sys, gtape as tf; tf.keras; "
            "print(any(n.startswith('gtape.keras.') for n in sys.modules))")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(("name", "stddev"), [
    ("glorot_uniform", np.sqrt(2 / 500)), ("glorot_normal", np.sqrt(2 / 500)),
    ("he_uniform", np.sqrt(2 / 300)), ("he_normal", np.sqrt(2 / 300)),
    ("lecun_uniform", np.sqrt(1 / 300)), ("lecun_normal", np.sqrt(1 / 300)),
    ("random_normal", 0.05), ("random_uniform", 0.05 / np.sqrt(3))])
def test_spread_of_random_initializers(name, stddev):
    values = np.asarray(initializers.get(name)((300, 200)))
    assert values.dtype == np.float32
    assert values.std() == pytest.approx(stddev, rel=0.02)
    assert abs(values.mean()) < 0.02 * stddev


def test_glorot_limit():
    values = np.asarray(initializers.GlorotUniform()((200, 100)))
    assert 0.1413 < np.abs(values).max() <= np.sqrt(6 / 300)


def test_seeds():
    a, b = (initializers.HeNormal(seed=1)((3, 4)) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(initializers.HeNormal()((3, 4)), initializers.HeNormal()((3, 4)))
    keras.utils.set_random_seed(7)
    first = initializers.HeNormal()((3, 4))
    keras.utils.set_random_seed(7)
    np.testing.assert_array_equal(first, initializers.HeNormal()((3, 4)))


def test_fixed_initializers():
    np.testing.assert_array_equal(initializers.Zeros()((2,)), [0, 0])
    np.testing.assert_array_equal(initializers.Ones()((2,), "int32"), [1, 1])
    np.testing.assert_array_equal(initializers.Constant([1.0, 2.0])((2, 2)), [[1, 2], [1, 2]])
    np.testing.assert_array_equal(initializers.Identity(2.0)((2, 3)), [[2, 0, 0], [0, 2, 0]])
    q = np.asarray(initializers.Orthogonal()((6, 4)))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-5)
    assert initializers.Orthogonal()((3, 3, 2, 4)).shape == (3, 3, 2, 4)
    assert initializers.STFT()((8, 1, 5)).shape == (8, 1, 5)
    assert np.abs(initializers.TruncatedNormal(stddev=1.0)((1000,))).max() <= 2


@pytest.mark.parametrize("call", [
    lambda: initializers.get("nonsense"), lambda: initializers.Identity()((2,)),
    lambda: initializers.VarianceScaling(mode="fan"), lambda: initializers.VarianceScaling(-1.0),
    lambda: initializers.HeNormal()((2, 2), "int32"), lambda: initializers.Orthogonal()((2,)),
    lambda: keras.activations.get("nonsense"), lambda: keras.regularizers.L2(-1.0),
    lambda: keras.regularizers.get("nonsense"), lambda: keras.constraints.get("nonsense"),
    lambda: keras.config.set_floatx("int32"), lambda: keras.utils.set_random_seed(-1),
    lambda: keras.utils.to_categorical([3], 2),
    lambda: keras.layers.Dense(2, dtype="mixed_float16"),
])
def test_wrong_arguments(call):
    with pytest.raises(ValueError):
        call()


def test_activations():
    x = tf.constant([-2.0, 0.5, 7.0])
    a = keras.activations
    np.testing.assert_allclose(a.relu(x, negative_slope=0.1, max_value=6.0), [-0.2, 0.5, 6.0])
    np.testing.assert_allclose(a.relu(x, threshold=1.0), [0, 0, 7])
    np.testing.assert_allclose(a.leaky_relu(x), [-0.4, 0.5, 7.0])
    np.testing.assert_allclose(a.elu(x, 0.5)[0], 0.5 * np.expm1(-2), rtol=1e-6)
    both = a.softmax(tf.ones((2, 3, 4)), axis=(1, 2))
    np.testing.assert_allclose(both, np.full((2, 3, 4), 1 / 12), rtol=1e-6)
    assert a.get(None) is a.linear and a.get("relu") is a.relu


def test_regularizers():
    w = tf.constant([[1.0, -2.0], [3.0, 0.0]])
    r = keras.regularizers
    assert float(r.L1(0.5)(w)) == 3
    assert float(r.L2(0.5)(w)) == 7
    assert float(r.L1L2(0.5, 0.5)(w)) == 10
    assert float(r.OrthogonalRegularizer()(tf.eye(3))) == 0


def test_constraints():
    w = tf.constant([[3.0, 0.3], [4.0, -0.4]])
    c = keras.constraints
    np.testing.assert_allclose(c.MaxNorm(1.0)(w), [[0.6, 0.3], [0.8, -0.4]], rtol=1e-5)
    np.testing.assert_allclose(c.UnitNorm()(w), [[0.6, 0.6], [0.8, -0.8]], rtol=1e-5)
    np.testing.assert_allclose(c.NonNeg()(w), [[3, 0.3], [4, 0]], rtol=1e-6)
    norms = np.linalg.norm(c.MinMaxNorm(1.0, 2.0)(w), axis=0)
    np.testing.assert_allclose(norms, [2, 1], rtol=1e-5)


def test_floatx():
    keras.config.set_floatx("float64")
    try:
        assert keras.layers.Dense(2)(np.ones((1, 2))).dtype == tf.float64
    finally:
        keras.config.set_floatx("float32")


def test_helpers():
    np.testing.assert_array_equal(keras.utils.to_categorical([0, 2]), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(keras.utils.normalize([[3.0, 4.0]]), [[0.6, 0.8]])
    assert isinstance(tf.constant_initializer(2.0)((1,)), tf.Tensor)
    draw = tf.random_normal_initializer()
    assert not np.array_equal(draw((3,)), draw((3,)))

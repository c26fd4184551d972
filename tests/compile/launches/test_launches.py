"""What a compiled function launches on a GPU, and that it computes what its nodes do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.launches import launches

_SHAPES = [(4, 5), (4, 5), (5,), (4, 1), (), (1, 1), (2, 3)]


def _ops(function: Any, *args: Any) -> list[str]:
    """The names of the steps that a call takes."""
    traced = tf.function(function).get_concrete_function(*args)._traced
    return [node.op.name for node in launches(traced.graph).nodes]


def _random_steps(seed: int) -> Any:
    """A function of tensors with these shapes: many formulas, some sums and products."""
    def function(*xs: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = list(xs)
        ones = [tf.tanh, tf.square, lambda x: x * 0.5 + 1.0, tf.sigmoid, tf.abs, tf.stop_gradient]
        twos = [tf.add, tf.multiply, tf.subtract, tf.maximum]
        for _ in range(25):
            first = values[rng.integers(len(values))]
            if rng.random() < 0.15:
                values.append(tf.reduce_mean(first, keepdims=bool(rng.integers(2))))
            elif rng.random() < 0.4:
                values.append(ones[rng.integers(len(ones))](first))
            else:
                others = [v for v in values if v.shape in (first.shape, (), (1, 1))
                          or (first.shape == (4, 5) and v.shape in ((5,), (4, 1)))]
                values.append(twos[rng.integers(len(twos))](
                    first, others[rng.integers(len(others))]))
        chosen = rng.choice(len(values), 6)
        return [values[i] for i in chosen]

    return function


@pytest.mark.parametrize("seed", range(12))
def test_random_functions_compute_what_they_do_on_the_cpu(gpus: Any, seed: int) -> None:
    arrays = [np.random.default_rng(seed + i).normal(size=s).astype("f")
              for i, s in enumerate(_SHAPES)]
    function = _random_steps(seed)
    found = tf.function(function)(*map(tf.constant, arrays))
    with tf.device("CPU:0"):
        wanted = function(*map(tf.constant, arrays))
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


_KERNELS = pytest.mark.parametrize("gpus", ["kernels"], indirect=True)


@_KERNELS
def test_formulas_that_read_each_other_are_one_launch_with_several_results(gpus: Any) -> None:
    def both(x: Any) -> Any:
        y = tf.tanh(x) * 2.0
        return y, tf.square(y) + x

    x = tf.constant([[0.5, -1.0]])
    assert len(_ops(both, x)) == 1
    first, second = tf.function(both)(x)
    np.testing.assert_allclose(first.numpy(), np.tanh([[0.5, -1.0]]) * 2, rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), first.numpy() ** 2 + x.numpy(), rtol=1e-6)


@_KERNELS
def test_the_same_formula_of_several_tensors_is_one_launch(gpus: Any) -> None:
    def every(rate: Any, *xs: Any) -> Any:
        return [x - rate * tf.square(x) for x in xs]

    xs = [tf.constant(np.full(n, n, "f")) for n in (1, 2, 5000, 0)]
    rate = tf.constant(0.5)
    assert _ops(every, rate, *xs) == ["subtract of 4"]
    for x, made in zip(xs, tf.function(every)(rate, *xs), strict=True):
        np.testing.assert_array_equal(made.numpy(), x.numpy() - 0.5 * x.numpy() ** 2)


@_KERNELS
def test_what_waits_for_a_launch_comes_after_it(gpus: Any) -> None:
    def steps(x: Any) -> Any:
        y = tf.tanh(x)
        total = tf.reduce_sum(y)
        return y * total, tf.square(x) * total + y

    x = tf.constant([0.5, 1.0, -2.0])
    assert _ops(steps, x)[1] == "reduce_sum_" and len(_ops(steps, x)) == 3
    for a, b in zip(tf.function(steps)(x), steps(x)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@_KERNELS
def test_the_same_value_is_computed_once(gpus: Any) -> None:
    def twice(x: Any, y: Any) -> Any:
        return tf.matmul(y, tf.exp(x)), tf.matmul(tf.exp(x), y), tf.exp(x)

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert _ops(twice, x, x).count("exp") == 1
    results = tf.function(lambda x: (tf.exp(x), tf.exp(x)))(x)
    assert results[0] is not results[1]
    np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())


def test_steps_in_python_keep_their_order(gpus: Any) -> None:
    seen: list[float] = []

    def told(value: Any) -> None:
        seen.append(float(np.max(value)))

    @tf.function
    def steps(x: Any) -> Any:
        y = tf.tanh(tf.reduce_sum(tf.tanh(x)) + x) * 0.0
        tf.py_function(told, [y + 1.0], [])
        tf.py_function(told, [x * 0.0 + 2.0], [])
        return y

    steps(tf.constant([1.0, 2.0]))
    assert seen == [1.0, 2.0]


@_KERNELS
def test_floats_of_two_bytes_are_joined_where_they_may_be_exact(gpus: Any) -> None:
    xs = [tf.constant(np.linspace(-1, 1, n).astype("float16")) for n in (3, 40)]

    def every(*xs: Any) -> Any:
        return [tf.tanh(x) * 3.0 + x for x in xs]

    assert _ops(every, *xs) == ["add of 2"]
    for x, made in zip(xs, tf.function(every)(*xs)):
        exact = np.asarray(x.numpy(), "float64")
        np.testing.assert_allclose(np.asarray(made.numpy(), "float64"),
                                   np.tanh(exact) * 3 + exact, rtol=1e-2)
    tf.config.experimental.enable_excess_precision(False)
    try:
        assert len(_ops(every, *xs)) == 6
    finally:
        tf.config.experimental.enable_excess_precision(True)

"""LSTM and GRU over sequences against their formulas, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.ops.nn import recurrent
from tests.ops.directions import check

Tensors = list[Any]


def _draw(gates: int, biased: bool, states: int, steps: int, batch: int, units: int) -> Tensors:
    rng = np.random.default_rng(0)
    bias = [(gates * units,)] if biased else []
    shapes = [(steps, batch, gates * units), (units, gates * units), *bias,
              *[(batch, units)] * states]
    return [tf.constant(rng.normal(size=shape)) for shape in shapes]


def _lstm_inputs(steps: int, batch: int, units: int) -> Tensors:
    return _draw(4, False, 2, steps, batch, units)


def _gru_inputs(steps: int, batch: int, units: int) -> Tensors:
    return _draw(3, True, 1, steps, batch, units)


def _plain_lstm(x: Any, weights: Any, h: Any, c: Any, sequences: bool) -> Any:
    outputs = []
    for step in range(x.shape[0]):
        i, f, g, o = tf.split(x[step] + h @ weights, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return outputs if sequences else [h], [h, c]


def _plain_gru(x: Any, weights: Any, bias: Any, h: Any, sequences: bool) -> Any:
    outputs = []
    for step in range(x.shape[0]):
        z, r, n = tf.split(x[step], 3, axis=1)
        more_z, more_r, more_n = tf.split(h @ weights + bias, 3, axis=1)
        u = tf.sigmoid(z + more_z)
        h = u * h + (1 - u) * tf.tanh(n + tf.sigmoid(r + more_r) * more_n)
        outputs.append(h)
    return outputs if sequences else [h], [h]


_PAIRS = {"lstm": (recurrent.lstm, _plain_lstm, _lstm_inputs),
          "gru": (recurrent.gru, _plain_gru, _gru_inputs)}
_SIZES = {"some": (4, 3, 5), "one step": (1, 3, 5), "batch of one": (3, 1, 2),
          "one unit": (3, 2, 1)}


def _number(run: Callable[..., Any], sequences: bool) -> Callable[..., Any]:
    """All results in one number, each element with a weight of its own."""
    def loss(*inputs: Any) -> Any:
        outputs, state = run(*inputs, sequences)
        flat = tf.concat([tf.reshape(v, [-1]) for v in [*outputs, *state]], 0)
        return tf.reduce_sum(tf.sin(flat) * tf.cast(tf.range(1, flat.shape[0] + 1), flat.dtype))

    return loss


def _gradients(run: Callable[..., Any], inputs: Tensors) -> tuple[Any, Tensors, Tensors]:
    """The number, its gradients, and the gradients of the sum of their sines."""
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = run(*inputs)
        first = tape.gradient(value, inputs)
        total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in first])
    return value, first, outer.gradient(total, inputs)


@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("name", _PAIRS)
def test_values_and_gradients_of_two_orders(name: str, size: str, sequences: bool) -> None:
    run, plain, draw = _PAIRS[name]
    inputs = draw(*_SIZES[size])
    for made, wanted in zip(tf.nest.flatten(run(*inputs, sequences)),
                            tf.nest.flatten(plain(*inputs, sequences)), strict=True):
        np.testing.assert_allclose(made, wanted, atol=1e-14)
    wanted = _gradients(_number(plain, sequences), inputs)
    eager = _gradients(_number(run, sequences), inputs)
    traced = tf.function(lambda *given: _gradients(_number(run, sequences), list(given)))(*inputs)
    for made in (eager, traced):
        for a, b in zip(tf.nest.flatten(made), tf.nest.flatten(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", _PAIRS)
def test_derivatives_along_directions(name: str) -> None:
    run, _, draw = _PAIRS[name]
    check(_number(run, True), *[v.numpy() for v in draw(3, 2, 2)])


@pytest.mark.parametrize("name", _PAIRS)
def test_one_output_alone_has_a_gradient(name: str) -> None:
    run, plain, draw = _PAIRS[name]
    inputs = draw(4, 2, 3)
    for at in (0, 2):
        parts = []
        for form in (run, plain):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                y = form(*inputs, True)[0][at]
            parts.append(tape.gradient(y, inputs))
        for a, b in zip(*parts, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("name", _PAIRS)
def test_two_byte_and_single_floats(name: str) -> None:
    run, plain, draw = _PAIRS[name]
    inputs = draw(3, 2, 4)
    for dtype, tolerance in ((tf.float32, 1e-5), (tf.float16, 1e-2), (tf.bfloat16, 6e-2)):
        outputs, state = run(*[tf.cast(v, dtype) for v in inputs])
        assert {v.dtype for v in [*outputs, *state]} == {dtype}
        np.testing.assert_allclose(tf.cast(outputs[-1], tf.float64),
                                   plain(*inputs, True)[0][-1], atol=tolerance)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, weights, h, c = _lstm_inputs(2, 3, 4)
    with pytest.raises(tf.errors.InvalidArgumentError):
        recurrent.lstm(x, weights[:3], h, c)
    with pytest.raises(tf.errors.InvalidArgumentError):
        recurrent.gru(*_gru_inputs(2, 3, 4)[:3], h[:2])

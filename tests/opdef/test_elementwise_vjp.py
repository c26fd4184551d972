"""The backward of elementwise ops: which of its two forms is made, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.spec import Spec
from gtape.opdef import elementwise_vjp
from gtape.opdef.eager_functions import specialised
from gtape.opdef.elementwise import ScalarFunction
from gtape.trace.tracer import trace


def _fresh() -> Any:
    """A function that nobody has differentiated yet."""
    op = ScalarFunction(lambda x, y: tf.sin(x) * tf.exp(y), types="real_float", name="fresh")
    return specialised(op, lambda *arrays: op.compute(tf.constant(1.0)._t, arrays), ("x", "y"))


def _slopes(function: Any, x: Any, y: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = function(x, y)
    return tape.gradient(z, [x, y])


def test_a_trace_prints_no_function_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    define = elementwise_vjp.define
    monkeypatch.setattr(elementwise_vjp, "define",
                        lambda source, *rest: printed.append(source) or define(source, *rest))
    function, x, y = _fresh(), np.float32([0.5, 1.0]), np.float32([0.25, 2.0])
    graph = trace(lambda *xs: _slopes(function, *xs), [Spec((2,), tf.float32)] * 2)
    assert len(graph.outputs) == 2 and not printed
    dx, dy = _slopes(function, tf.constant(x), tf.constant(y))
    assert len(printed) == 1
    np.testing.assert_allclose(dx, np.cos(x) * np.exp(y), rtol=1e-6)
    np.testing.assert_allclose(dy, np.sin(x) * np.exp(y), rtol=1e-6)


def test_an_array_is_pulled_back_after_a_tensor_was() -> None:
    """The form for tensors comes first, at second order; the other one later."""
    function, x, y = _fresh(), tf.constant([0.5]), tf.constant([0.25])
    with tf.GradientTape() as outer:
        outer.watch(x)
        (slope, _) = _slopes(function, x, y)
    assert float(outer.gradient(slope, x)[0]) == pytest.approx(-np.sin(0.5) * np.exp(0.25))
    assert float(_slopes(function, x, y)[0][0]) == pytest.approx(np.cos(0.5) * np.exp(0.25))

"""Traces: what a graph holds, that it replays, and what a symbol refuses to say."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.core.dtypes import float32, float64
from gtape.core.errors import OperatorNotAllowedInGraphError
from gtape.core.spec import Spec
from gtape.trace.graph import Graph
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import check, trace

_F = Spec((2, 3), float32)


def test_a_trace_replays_on_other_values() -> None:
    graph = trace(lambda x, y: tf.reduce_sum(tf.tanh(x) * y + 1.0, axis=1), [_F, _F])
    rng = np.random.default_rng(0)
    for _ in range(3):
        a, b = (rng.standard_normal((2, 3)).astype(np.float32) for _ in range(2))
        (got,) = graph(tf.constant(a), tf.constant(b))
        np.testing.assert_allclose(got, (np.tanh(a) * b + 1).sum(axis=1), rtol=1e-5)


def test_specs_are_known_without_values() -> None:
    graph = trace(lambda x: tf.cast(x, tf.float64) @ tf.ones([3, 5], tf.float64), [_F])
    (out,) = graph.outputs
    assert isinstance(out, SymbolicTensor)
    assert out.shape == (2, 5)
    assert out.dtype == tf.float64
    assert out.spec == Spec((2, 5), float64)


def test_a_replay_is_recorded_by_tapes() -> None:
    graph = trace(lambda x: x * x * x, [Spec((), float64)])
    x = tf.Variable(2.0, dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            (y,) = graph(x.value())
        g = inner.gradient(y, x)
    assert float(g) == 12.0
    assert float(outer.gradient(g, x)) == 12.0


def test_the_gradient_itself_can_be_traced() -> None:
    def slope(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * x
        return tape.gradient(y, x)

    graph = trace(slope, [_F])
    x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    (got,) = graph(tf.constant(x))
    np.testing.assert_allclose(got, np.cos(x) * x + np.sin(x), rtol=1e-5)


def test_nodes_that_no_output_needs_are_dropped() -> None:
    def f(x: tf.Tensor) -> tf.Tensor:
        tf.exp(tf.exp(x))
        return x + 1.0

    graph = trace(f, [_F])
    assert [n.op.name for n in graph.nodes] == ["add"]


def test_check_finds_contradictions() -> None:
    graph = trace(lambda x: tf.exp(x) + tf.sin(x), [_F])
    check(graph)
    late = Graph(graph.inputs, graph.nodes[::-1], graph.outputs)
    with pytest.raises(tf.errors.InternalError, match="before it is made"):
        check(late)
    twice = Graph(graph.inputs, (graph.nodes[0], *graph.nodes), graph.outputs)
    with pytest.raises(tf.errors.InternalError, match="there already"):
        check(twice)


def test_the_text_shows_every_node() -> None:
    text = str(trace(lambda x: tf.reduce_sum(tf.exp(x)), [_F]))
    assert text.splitlines()[0] == "inputs %0: float32[2,3]"
    assert "exp(%0)" in text
    assert text.splitlines()[-1] == "outputs %2"


@pytest.mark.parametrize("use", [
    lambda x: float(x[0, 0]), lambda x: bool(tf.reduce_sum(x) > 0.0),
    lambda x: 1 if tf.reduce_sum(x) > 0.0 else 2])
def test_a_symbol_has_no_python_value(use: object) -> None:
    with pytest.raises(OperatorNotAllowedInGraphError, match="not known while tracing"):
        trace(lambda x: tf.exp(x) * use(x), [_F])  # type: ignore[operator]


def test_a_symbol_has_no_array() -> None:
    with pytest.raises(NotImplementedError, match="NumPy cannot use"):
        trace(lambda x: np.exp(x), [_F])
    with pytest.raises(AttributeError, match="no value yet"):
        trace(lambda x: x.numpy(), [_F])


def test_wrong_shapes_are_found_while_tracing() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        trace(lambda x: x @ x, [_F])
    with pytest.raises(tf.errors.InvalidArgumentError):
        trace(lambda x: x + tf.ones([5]), [_F])


def test_constants_are_kept_as_they_are() -> None:
    weights = tf.constant([[1.0], [2.0], [3.0]])
    graph = trace(lambda x: x @ weights, [_F])
    (got,) = graph(tf.ones([2, 3]))
    np.testing.assert_allclose(got, [[6.0], [6.0]])

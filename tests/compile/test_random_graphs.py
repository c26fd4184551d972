"""Random programs: compiled, compiled without fusion, applied node by node, and eager agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import ClosedGraph, trace_closed
from gtape.compile.launches import InterpretedProgram
from gtape.core.tensor import Tensor
from gtape.trace.tracer import Tracer, check

pytestmark = pytest.mark.native(zones=False)  # values share places in memory
Rng = np.random.Generator

_UNARY: list[Callable[[Any], Any]] = [
    tf.tanh, tf.sigmoid, tf.nn.relu, lambda x: tf.exp(-tf.square(x)), lambda x: x * 0.5 + 1.0,
    tf.sin, lambda x: tf.sqrt(tf.square(x) + 1.0), tf.nn.softplus, tf.abs]
_BINARY: list[Callable[[Any, Any], Any]] = [
    tf.add, tf.subtract, tf.multiply, tf.maximum, lambda x, y: x / (tf.square(y) + 1.0),
    lambda x, y: tf.where(x > y, x, y * 0.5)]
_REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_logsumexp]


def _unary(x: Any, pool: list[Any], rng: Rng) -> Any:
    return _UNARY[rng.integers(len(_UNARY))](x)


def _binary(x: Any, pool: list[Any], rng: Rng) -> Any:
    f = _BINARY[rng.integers(len(_BINARY))]
    others = [y for y in pool if _fits(x.spec.shape, y.spec.shape)]
    return f(x, others[rng.integers(len(others))])


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def _reduced(x: Any, pool: list[Any], rng: Rng) -> Any:
    rank = len(x.spec.shape)
    axes = [i for i in range(rank) if rng.random() < 0.5]
    return _REDUCTIONS[rng.integers(len(_REDUCTIONS))](x, axes, keepdims=bool(rng.random() < 0.6))


def _moved(x: Any, pool: list[Any], rng: Rng) -> Any:
    kind, shape = rng.integers(5), x.spec.shape
    if kind == 0:
        return tf.transpose(x, rng.permutation(len(shape)).tolist())
    if kind == 1:
        return tf.reshape(x, [-1])
    if kind == 2:
        return tf.expand_dims(x, int(rng.integers(len(shape) + 1)))
    if kind == 3 and shape and shape[0] > 1:
        return x[1:] if rng.random() < 0.5 else x[::-1]
    return tf.concat([x, x * 2.0], 0) if shape else x


def _softmax(x: Any, pool: list[Any], rng: Rng) -> Any:
    return tf.nn.softmax(x) if x.spec.shape else x


def _product(x: Any, pool: list[Any], rng: Rng) -> Any:
    shape = x.spec.shape
    if len(shape) != 2:
        return x
    others = [y for y in pool if len(y.spec.shape) == 2 and y.spec.shape[0] == shape[1]]
    if not others:
        return tf.matmul(x, x, transpose_b=True) * 0.1
    return tf.matmul(x, others[rng.integers(len(others))]) * 0.1


_STEPS = [_unary, _unary, _binary, _binary, _binary, _reduced, _moved, _softmax, _product]


def _program(seed: int, variable: tf.Variable) -> Callable[..., Any]:
    """Some random steps on two tensors and a variable, and the gradients of what comes out."""
    def run(a: Tensor, b: Tensor) -> Any:
        rng = np.random.default_rng(seed)
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            pool: list[Any] = [a, b, tf.identity(variable)]
            for _ in range(14):
                x = pool[rng.integers(max(0, len(pool) - 6), len(pool))]
                made = _STEPS[rng.integers(len(_STEPS))](x, pool, rng)
                if tf.size(made) <= 4096:
                    pool.append(made)
            total = tf.add_n([tf.reduce_sum(tf.tanh(x)) for x in pool[3:]])
        gradients = tape.gradient(total, [a, b, variable])
        variable.assign(variable * 0.9 + tf.reduce_mean(a))
        return total, pool[-1], pool[-2], gradients

    return run


def _close(got: Any, want: Any) -> None:
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want)):
        if a is None or b is None:
            assert a is b
        else:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


def _traced(fn: Callable[..., Any], tensors: list[Tensor]) -> ClosedGraph:
    tracer = Tracer()
    symbols = [tracer.symbol(t.spec, t._t) for t in tensors]
    return trace_closed(lambda: fn(*symbols), tracer, symbols, "program")


@pytest.mark.parametrize("group", range(6))
def test_all_ways_agree(group: int) -> None:
    rng = np.random.default_rng(group)
    shapes = [((3, 4), (4,), (3, 1)), ((5,), (5,), ()), ((2, 3, 4), (3, 4), (4,)),
              ((4, 4), (4, 4), (4, 4)), ((1, 6), (6, 1), (6,)), ((2, 1, 3), (1, 2, 3), (3,))][group]
    tensors = [tf.constant(rng.normal(size=s), tf.float32) for s in shapes[:2]]
    start = rng.normal(size=shapes[2]).astype(np.float32)
    variables = [tf.Variable(start) for _ in range(5)]
    programs = [_program(100 * group + i, v) for i, v in enumerate(variables)]

    def every(*xs: Tensor) -> Any:
        return [p(*xs) for p in programs]

    want, after = every(*tensors), [v.numpy() for v in variables]
    graph = _traced(every, tensors)
    check(graph.graph)
    for make in (compile_closed, lambda t: compile_closed(t, fuse=False),
                 lambda t: InterpretedProgram(t, "test")):
        for variable in variables:
            variable.assign(start)
        _close(graph.packed(make(graph).run(tensors)), want)
        _close([v.read_value() for v in variables], after)

"""Long rows, many nodes, many results, much that a kernel keeps."""

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import compile_closed
from tests.compile.agreement import agree, trace_of

pytestmark = pytest.mark.native


def test_long_sums_are_as_close_as_those_of_numpy():
    def fn(x):
        return [tf.reduce_sum(x, 1), tf.reduce_mean(x, 1), tf.reduce_sum(x),
                tf.reduce_sum(tf.reshape(x, (50, -1)), 1),
                tf.reduce_sum(tf.reshape(x, (250, -1)), 1),
                tf.reduce_sum(tf.reshape(x, (2, 5, -1, 50)), (2, 3)),
                x[:, :1] - tf.reduce_mean(x, 1, keepdims=True)]

    for x in (np.full((5, 400000), 0.1, "f"),
              np.abs(np.random.default_rng(0).normal(size=(5, 400000)).astype("f"))):
        agree(fn, x, tolerance=1e-6, ways=(True,))
    agree(lambda x: tf.reduce_sum(x), np.full(10_000_000, 0.1, "f"), tolerance=1e-6, ways=(True,))


def test_rows_that_later_passes_need_do_not_fill_the_stack():
    def fn(x):
        waves = [tf.exp(x * (0.01 * i)) for i in range(90)]
        total = tf.reduce_sum(tf.add_n(waves), 1, keepdims=True)
        return tf.add_n([wave / total * (i + 1.0) for i, wave in enumerate(waves)])

    agree(fn, np.random.default_rng(0).normal(size=(6, 16000)), tolerance=1e-9, ways=(True,))


def test_more_nodes_than_one_kernel_takes():
    def fn(x):
        y, kept = x, []
        for i in range(1200):
            y = y * 0.999 + x * 0.001 if i % 3 else tf.abs(y) - 0.1
            if i % 3 == 0:
                kept.append(y)
        return y, kept

    program = compile_closed(trace_of(fn, np.zeros(7, "f")))
    assert max(len(g.nodes) for g in program.plan.groups) <= 512
    x = np.linspace(-1, 1, 7).astype("f")
    got = program.entry(tf.constant(x))
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(fn(tf.constant(x)))):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("shape", [(4, 5), (2, 9000), (5000, 3), (1, 1), (700, 257)])
def test_reductions_of_reductions(shape):
    def fn(x):
        column, row, scale = tf.reduce_sum(tf.exp(x), 0), tf.reduce_max(x, 1), tf.reduce_sum(x)
        mixed = tf.reduce_sum(tf.nn.softmax(x) * column, 1)
        return [column, row, scale, tf.reduce_sum(x * row[:, None]), mixed,
                tf.reduce_sum(mixed * row), tf.reduce_min(x, 0), tf.nn.softmax(x, 0) * scale,
                x - tf.reduce_mean(x, 0), tf.math.reduce_variance(x, 1)]

    agree(fn, np.random.default_rng(shape).normal(size=shape), tolerance=1e-9, ways=(True,))

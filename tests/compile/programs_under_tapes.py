"""Small programs for tests of recorded calls.

Each makes its state anew and gives a function, its arguments, and what else to differentiate by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gtape as tf

_RNG = np.random.default_rng(7)


def numbers(*shape: int) -> np.ndarray:
    return _RNG.normal(size=shape).astype(np.float32)


_A, _B, _W1, _B1, _W2, TABLE, _IMAGE, _KERNEL = (
    numbers(4, 3), numbers(4, 3), numbers(3, 5), numbers(5), numbers(5, 3), numbers(6, 3),
    numbers(2, 6, 6, 3), numbers(3, 3, 3, 4))


def mlp():
    w1, b1, w2 = tf.Variable(_W1), tf.Variable(_B1), tf.Variable(_W2)

    def f(x, y):
        return tf.reduce_mean(tf.square(tf.nn.relu(x @ w1 + b1) @ w2 - y))

    return f, [tf.constant(_A), tf.constant(_B)], [w1, b1, w2]


def cross_entropy():
    w1, w2 = tf.Variable(_W1), tf.Variable(_W2)

    def f(x, labels):
        logits = tf.nn.gelu(x @ w1) @ w2
        hit = tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), labels), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return {"loss": tf.reduce_mean(losses), "logits": logits, "hits": [tf.reduce_mean(hit)]}

    return f, [tf.constant(_A), tf.constant([0, 2, 1, 1])], [w1, w2]


def embedding():
    table, w = tf.Variable(TABLE), tf.Variable(_W1)

    def f(at, x):
        rows = tf.gather(table, at)
        return tf.reduce_sum(tf.tanh(rows * x) @ w), rows

    return f, [tf.constant([5, 0, 5, 2]), tf.constant(_A)], [table, w]


def sums_of_lookups():
    table = tf.Variable(TABLE)
    return (lambda at: tf.reduce_sum(tf.sin(tf.gather(table, at)) * tf.gather(table, at[::-1])),
            [tf.constant([1, 1, 4])], [table])


def batch_norm():
    gamma, beta = tf.Variable(tf.ones([3]) * 0.7), tf.Variable(tf.zeros([3]))
    mean, variance = (tf.Variable(tf.zeros([3]), trainable=False) for _ in range(2))

    def f(x):
        m, v = tf.nn.moments(x, [0])
        mean.assign(mean * 0.9 + m * 0.1)
        variance.assign(variance * 0.9 + v * 0.1)
        y = tf.nn.batch_normalization(x, m, v, beta, gamma, 1e-3)
        return tf.nn.sigmoid(y)

    return f, [tf.constant(_A)], [gamma, beta]


def convolution():
    kernel, bias = tf.Variable(_KERNEL), tf.Variable(tf.ones([4]))

    def f(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias)
        return tf.reduce_mean(tf.nn.max_pool2d(y, 2, 2, "VALID"), [1, 2])

    return f, [tf.constant(_IMAGE)], [kernel, bias]


def loop():
    w = tf.Variable(0.5)

    def f(x):
        return tf.while_loop(lambda s: tf.reduce_sum(s) < 50.0, lambda s: [s * (1.5 + w)],
                             [tf.exp(x)])[0] * w

    return f, [tf.constant(_A)], [w]


def custom():
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def odd(x):
        def pull(g, variables=None):
            return g * 10.0 * x, [tf.reduce_sum(g * 7.0 * v)]

        return tf.exp(x) * v, pull

    return lambda x: tf.square(odd(tf.sin(x))), [tf.constant(_A)], [v]


def recomputed():
    w1, w2 = tf.Variable(_W1), tf.Variable(_W2)

    @tf.recompute_grad
    def block(x):
        return tf.tanh(tf.tanh(x @ w1) @ w2)

    return lambda x: tf.reduce_sum(block(block(x)) ** 2), [tf.constant(_A)], [w1, w2]


def nested():
    w = tf.Variable(_W1)

    @tf.function
    def inner(x):
        return tf.nn.softmax(x @ w)

    return lambda x: tf.math.log(inner(x) + inner(x * 2.0)), [tf.constant(_A)], [w]


def constants():
    c, held = tf.constant(_B), tf.constant(2.0)
    return lambda x: (tf.sin(x * c) * held, c), [tf.constant(_A)], [c, held]


def arguments_as_results():
    return (lambda x, y: (x, x * y, x, [y, None, tf.constant(1.0)]),
            [tf.constant(_A), tf.constant(_B)], [])


def partly():
    w, unused = tf.Variable(_W1), tf.Variable(1.0)

    def f(x, y):
        return x @ w, tf.stop_gradient(y) * 2.0, y * tf.stop_gradient(unused * 1.0), tf.size(x)

    return f, [tf.constant(_A), tf.constant(_B)], [w, unused]


def inner_gradient():
    w = tf.Variable(_B)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x * w))
        return tape.gradient(y, x)

    return f, [tf.constant(_A)], [w]


PROGRAMS = [mlp, cross_entropy, embedding, sums_of_lookups, batch_norm, convolution, loop,
             custom, recomputed, nested, constants, arguments_as_results, partly,
             inner_gradient]
#: Steps of these are Python code.
ONE_BY_ONE = (loop,)


def floats(made: Any) -> list[Any]:
    return [y for y in tf.nest.flatten(made) if y is not None and y.dtype.is_floating]


def same(got: Any, want: Any) -> None:
    got, want = tf.nest.flatten(got), tf.nest.flatten(want)
    assert [type(g) for g in got] == [type(w) for w in want]
    for g, w in zip(got, want):
        if g is not None:
            assert g.shape == w.shape
            assert g.dtype == w.dtype
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=3e-5, atol=3e-6)


def sources_of(args: list[Any], more: list[Any]) -> list[Any]:
    return [a for a in args if a.dtype.is_floating] + more


def watched(tape: Any, sources: list[Any]) -> None:
    tape.watch([s for s in sources if tf.is_tensor(s) and not hasattr(s, "assign")])


def weights(y: Any) -> Any:
    """Cotangents that differ."""
    return tf.cos(tf.cast(tf.reshape(tf.range(np.prod(y.spec.shape, dtype=int)), y.shape), y.dtype))

"""A fixed list of functions whose shapes are hard on kernels: nothing divides evenly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gtape as tf

from .running import environment

Case = tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]


def _gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """The value of `f` and its gradients by all arguments."""
    def both(*xs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return y, tape.gradient(y, list(xs), y * 0.5)

    return both


def _convolutions() -> list[Case]:
    made: list[Case] = [("conv 28x28x1 to 10 channels", _gradients(
        lambda x, k: tf.nn.conv2d(x, k, 1, "SAME")), ((32, 28, 28, 1), (3, 3, 1, 10)))]
    for c, out, k, stride, padding in (
            (1, 5, 3, 1, "SAME"), (3, 10, 5, 2, "SAME"), (5, 5, 2, 2, "VALID"),
            (7, 17, 3, 2, "SAME"), (2, 1, 1, 2, "VALID"), (17, 3, 3, 1, "VALID"),
            (4, 33, 2, 1, "SAME")):
        def convolve(x: Any, f: Any, stride: int = stride, padding: str = padding) -> Any:
            return tf.nn.conv2d(x, f, stride, padding)

        made.append((f"conv {c} to {out} channels, {k}x{k}, stride {stride}, {padding}",
                     _gradients(convolve), ((3, 9, 7, c), (k, k, c, out))))
    made.append(("depthwise conv of 5 channels", _gradients(
        lambda x, f: tf.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME")),
        ((3, 9, 7, 5), (3, 3, 5, 3))))
    made.append(("transposed conv of 5 channels", _gradients(
        lambda x, f: tf.nn.conv2d_transpose(x, f, [2, 10, 14, 3], 2, "SAME")),
        ((2, 5, 7, 5), (3, 3, 3, 5))))
    return made


def _products() -> list[Case]:
    made: list[Case] = []
    for m, k, n in ((1, 1, 1), (2, 3, 5), (7, 13, 11), (17, 31, 19), (127, 129, 65),
                    (255, 1, 257), (1, 509, 3), (67, 131, 1), (13, 0, 5)):
        made.append((f"matmul {m} x {k} x {n}", _gradients(tf.matmul), ((m, k), (k, n))))
    made.append(("batched matmul", _gradients(tf.matmul), ((5, 1, 7, 9), (3, 9, 11))))
    made.append(("matmul of transposed", _gradients(
        lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True)), ((37, 41), (53, 37))))
    return made


def _windows() -> list[Case]:
    made: list[Case] = []
    for size, stride, padding in ((2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "VALID"), (1, 3, "SAME")):
        for name, pool in (("avg", tf.nn.avg_pool2d), ("max", tf.nn.max_pool2d)):
            def pooled(x: Any, pool: Any = pool, size: int = size, stride: int = stride,
                       padding: str = padding) -> Any:
                return pool(x, size, stride, padding)

            made.append((f"{name} pool {size}, stride {stride}, {padding}", _gradients(pooled),
                         ((3, 7, 9, 5),)))
    return made


def _rows() -> list[Case]:
    ids = np.array([0, 3, 1, 3, 0, 2, 1])
    points = np.array([[0, 1], [6, 2], [3, 0]])
    return [
        ("scans", _gradients(lambda x: tf.cumsum(x, 0) + tf.cumsum(
            x, 1, exclusive=True, reverse=True) + tf.math.cumprod(x, 1)), ((7, 17),)),
        ("scans of logarithms", _gradients(lambda x: tf.math.cumulative_logsumexp(x, 0)),
         ((33, 5),)),
        ("gather and scatter", _gradients(lambda x: tf.gather(x, ids) + tf.scatter_nd(
            ids[:, None], x, [7, 5])), ((7, 5),)),
        ("gather of points", _gradients(lambda x: tf.gather_nd(x, points)), ((7, 3, 5),)),
        ("scatter into a tensor", _gradients(lambda x, u: tf.tensor_scatter_nd_add(
            x, ids[:, None], u)), ((4, 5), (7, 5))),
        ("segments", _gradients(lambda x: tf.concat([
            tf.math.unsorted_segment_sum(x, ids, 4), tf.math.unsorted_segment_max(x, ids, 5),
            tf.math.segment_mean(x, np.sort(ids))], 0)), ((7, 13),)),
        ("reductions", _gradients(lambda x: tf.reduce_sum(x, [0, 2]) * tf.reduce_max(
            x, [0, 2]) + tf.reduce_logsumexp(x, [0, 2])), ((7, 5, 17),)),
        ("softmax and layer norm", _gradients(lambda x, g: tf.nn.softmax(
            tf.nn.batch_normalization(x, *tf.nn.moments(x, [1], keepdims=True), None, g, 1e-3))),
            ((9, 31), (31,))),
        ("sort and top_k", _gradients(lambda x: tf.sort(x) * tf.math.top_k(x, 13).values),
         ((5, 13),)),
        ("images", _gradients(lambda x: tf.image.resize(x, [5, 11])), ((1, 7, 9, 3),)),
        ("nothing at all", _gradients(lambda x: tf.reduce_sum(x * 2.0, 1) + 1.0), ((0, 5),)),
    ]


def _training() -> list[Case]:
    def step(optimizer: str) -> Callable[..., Any]:
        w = tf.Variable(np.ones((7, 5), np.float32))
        b = tf.Variable(np.zeros(5, np.float32))
        made = getattr(tf.keras.optimizers, optimizer)(0.01)
        made.build([w, b])
        start = [w.numpy(), b.numpy(), *(v.numpy() for v in made.variables)]

        def train(x: Any) -> Any:
            for _ in range(2):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b))
                made.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
            return loss, w + 0.0, b + 0.0

        def again(x: Any) -> Any:
            for variable, value in zip([w, b, *made.variables], start):
                variable.assign(value)
            return train(x)

        return again

    made: list[Case] = [(f"{name} on 7x5 weights", step(name), ((3, 7),)) for name in (
        "SGD", "Adam", "AdamW", "RMSprop", "Adagrad")]
    made.append(("random draws", lambda x: x * tf.random.stateless_normal([17, 3], [1, 2]) + (
        tf.random.stateless_uniform([17, 3], [3, 4])), ((17, 3),)))
    return made


NASTY: list[Case] = [*_convolutions(), *_products(), *_windows(), *_rows(), *_training()]


def disagreements(cases: Sequence[Case]) -> list[str]:
    """How functions, compiled as one program, differ from what they are eagerly."""
    rng = np.random.default_rng(0)
    inputs = [[tf.constant(rng.uniform(0.2, 1.0, s).astype(np.float32)) for s in shapes]
              for _, _, shapes in cases]

    def every(given: list[Any]) -> list[Any]:
        return [tf.nest.flatten(f(*xs)) for (_, f, _), xs in zip(cases, given)]

    with environment():
        got = tf.function(every)(inputs)
    wanted = every(inputs)
    return [f"{name}: {said}" for (name, _, _), a, b in zip(cases, got, wanted)
            if (said := _differing(a, b))]


def _differing(got: Sequence[Any], wanted: Sequence[Any]) -> str:
    for i, (a, b) in enumerate(zip(map(np.asarray, got), map(np.asarray, wanted))):
        if a.shape != b.shape:
            return f"result {i} has the shape {a.shape}, eagerly {b.shape}"
        scale = max(float(np.max(np.abs(b), initial=0.0)), 1e-30)
        if not (np.abs(a - b) <= 2e-5 * scale).all():
            return f"result {i} differs by {np.max(np.abs(a - b)) / scale:.3g} of the largest"
    return ""

"""Checks of softmax, log-sum-exp, softmax cross entropy and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS, INTEGERS
from gtape.core.op import Op
from gtape.devices.cuda.kernels import softmax as kernels
from gtape.devices.cuda.kernels.softmax import ONE_ROW, TWO_ROWS, RowValues, shared_bytes
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.ops.nn.losses import (
    cross_entropy_grad_,
    softmax_cross_entropy_,
    sparse_cross_entropy_grad_,
    sparse_softmax_cross_entropy_,
)
from gtape.ops.nn.softmax import log_softmax_, log_softmax_grad_, softmax_, softmax_grad_
from gtape.ops.reductions.sums import reduce_logsumexp_

#: Short rows, some of them not filling the 16 bytes that a thread moves at once.
SMALL = ((0, 5), (5, 0), (1, 1), (37, 3), (5, 31), (9, 33), (6, 64), (3, 104), (2, 250))


def shapes(gpu: Executor, dtype: str, values: dict[int, RowValues]) -> tuple[tuple[int, int], ...]:
    """SMALL and the shapes around the limits of each way to hold a row of `dtype`, the last of
    them beyond what shared memory holds."""
    size = numpy_dtype(dtype).itemsize
    short, long, shared, stream = values[size]
    return (*SMALL, (3, 32 * short), (2, 32 * long), (3, 32 * long + 8), (2, 128 * long + 1),
            (2, 256 * long), (2, 256 * long + 8), (1, 256 * long + 1),
            (gpu.multiprocessors + 1, 256 * long + 8), (1, 3 * 1024 * shared - 8),
            (1, 2 * 1024 * stream + 1), (1, shared_bytes(gpu) // size + 8),
            (1, shared_bytes(gpu) // size + 1))


def scores(shape: tuple[int, int], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of which every second row grows: its largest element so far is always the last."""
    values = drawn(shape, seed, -20.0, 20.0, dtype)
    values[1::2] = np.sort(values[1::2], axis=1)
    return values


def extremes(dtype: str, cols: int) -> np.ndarray:
    """Rows with nan, with +inf, with both, with some -inf, of -inf alone, and an ordinary one."""
    values = drawn((6, cols), 1, dtype=dtype)
    values[0, cols // 2] = np.nan
    values[1, 1] = np.inf
    values[2, 0], values[2, -1] = np.inf, np.nan
    values[3, ::2] = -np.inf
    values[4] = -np.inf
    return values


Array = np.ndarray


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        for misaligned in (False, True):
            said = " misaligned" * misaligned
            for name, run in (
                    ("softmax", partial(_forward, kernels.softmax, _shares)),
                    ("log_softmax", partial(_forward, kernels.log_softmax, _logs)),
                    ("logsumexp", partial(_forward, kernels.logsumexp, _sums)),
                    ("softmax_grad",
                     partial(_backward, kernels.softmax_grad, softmax_grad_, _shares)),
                    ("log_softmax_grad",
                     partial(_backward, kernels.log_softmax_grad, log_softmax_grad_, _logs)),
                    ("logsumexp_grad", _logsumexp_grad)):
                yield Check(f"{name} {dtype}{said}",
                            partial(run, dtype=dtype, misaligned=misaligned))
            yield Check(f"cross_entropy of classes {dtype}{said}",
                        partial(_sparse, dtype=dtype, misaligned=misaligned))
            yield Check(f"cross_entropy of dense labels {dtype}{said}",
                        partial(_dense, dtype=dtype, misaligned=misaligned))
            yield Check(f"cross_entropy_grad {dtype}{said}",
                        partial(_grad, dtype=dtype, misaligned=misaligned))
        yield Check(f"cross_entropy in place {dtype}", partial(_in_place, dtype=dtype))
        yield Check(f"cross_entropy of nan and inf {dtype}", partial(_loss_extremes, dtype=dtype))
        yield Check(f"cross_entropy of labels that are no class {dtype}",
                    partial(_no_class, dtype=dtype))
        yield Check(f"softmax of nan and inf {dtype}", partial(_softmax_extremes, dtype=dtype))
        yield Check(f"softmax of large numbers {dtype}", partial(_large, dtype=dtype))
        yield Check(f"softmax of other axes {dtype}", partial(_axes, dtype=dtype))
    for integer in INTEGERS:
        yield Check(f"cross_entropy of classes in {integer}", partial(_integers, integer=integer))
    yield Check("softmax and cross_entropy of other arrays are not served", _unserved)


def _shares(x: Array) -> Array:
    return meant(softmax_, x, axis=x.ndim - 1)


def _logs(x: Array) -> Array:
    return meant(log_softmax_, x, axis=x.ndim - 1)


def _sums(x: Array) -> Array:
    return meant(reduce_logsumexp_, x, axis=(x.ndim - 1,), keepdims=False)


def _forward(function: Callable[..., Any], reference: Callable[[Array], Array], bench: Bench,
             dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        x = scores(shape, dtype)
        got = function(bench.gpu, bench.array(x, dtype, misaligned))
        bench.same(str(shape), got, reference(x))


def _backward(function: Callable[..., Any], op: Op, result: Callable[[Array], Array],
              bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, TWO_ROWS):
        y, g = _rounded(result(scores(shape, dtype)), dtype), drawn(shape, 2, dtype=dtype)
        got = function(bench.gpu, bench.array(g, dtype, misaligned),
                       bench.array(y, dtype, misaligned))
        bench.same(str(shape), got, meant(op, g, y, axis=1))


def _logsumexp_grad(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        x, g = scores(shape, dtype), drawn(shape[:-1], 2, dtype=dtype)
        got = kernels.logsumexp_grad(bench.gpu, bench.array(g, dtype),
                                     bench.array(x, dtype, misaligned))
        bench.same(str(shape), got, _shares(x) * g[..., None])


def _rounded(values: Array, dtype: str) -> Array:
    # As kernels are given them: not an error of theirs.
    return values.astype(numpy_dtype(dtype)).astype(np.float64)


def _softmax_extremes(bench: Bench, dtype: str) -> None:
    long = shapes(bench.gpu, dtype, ONE_ROW)[-1][1]
    for cols in (7, 40, 2 * 32 * ONE_ROW[numpy_dtype(dtype).itemsize].long, long):
        x = extremes(dtype, cols)
        if cols == long:
            x = x[:5:2]  # long rows are slow in the emulator
        there = bench.array(x, dtype)
        bench.same(f"softmax [{cols}]", kernels.softmax(bench.gpu, there), _shares(x))
        bench.same(f"log_softmax [{cols}]", kernels.log_softmax(bench.gpu, there), _logs(x))
        bench.same(f"logsumexp [{cols}]", kernels.logsumexp(bench.gpu, there), _sums(x))
        alone = bench.array(np.full((3, cols), -np.inf), dtype)
        got = kernels.logsumexp_grad(bench.gpu, bench.array(np.ones(3), dtype), alone)
        bench.same(f"logsumexp_grad of -inf alone [{cols}]", got, np.zeros((3, cols)))


def _large(bench: Bench, dtype: str) -> None:
    # 3e4 is in reach of every other dtype: float16 ends at 65504.
    top = float(np.finfo(np.float64).max) if dtype == "float64" else 3e4
    for cols in (5, 520):
        x = np.zeros((3, cols))
        x[0, -1] = x[1, 0] = top
        x[2] = -top
        x = _rounded(x, dtype)
        bench.same(f"softmax [{cols}]", kernels.softmax(bench.gpu, bench.array(x, dtype)),
                   _shares(x))
        bench.same(f"log_softmax [{cols}]", kernels.log_softmax(bench.gpu, bench.array(x, dtype)),
                   _logs(x))


def _axes(bench: Bench, dtype: str) -> None:
    x, g = drawn((3, 5, 4), 0, dtype=dtype), drawn((3, 5, 4), 1, dtype=dtype)
    for axis in (0, 1, -2, 2, -1):
        y = meant(softmax_, x, axis=axis % 3)
        got = kernels.softmax(bench.gpu, bench.array(x, dtype), axis)
        bench.same(f"softmax, axis {axis}", got, y)
        y = _rounded(y, dtype)
        got = kernels.softmax_grad(bench.gpu, bench.array(g, dtype), bench.array(y, dtype), axis)
        bench.same(f"softmax_grad, axis {axis}", got, meant(softmax_grad_, g, y, axis=axis % 3))





def _classes(shape: tuple[int, ...], below: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(0, max(below, 1), shape)


def _one_hot(labels: Array, classes: int) -> Array:
    return (labels[..., None] == np.arange(classes)).astype(np.float64)


def _sparse(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        if shape[1]:
            x, labels = scores(shape, dtype), _classes(shape[:1], shape[1])
            _all_forms(bench, dtype, misaligned, x, _one_hot(labels, shape[1]),
                       bench.array(labels, "int32"))


def _dense(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, TWO_ROWS):
        # Up to 2 / (n + 1): a row sums to about 1, as labels do.
        x, labels = scores(shape, dtype), drawn(shape, 4, 0.0, 2 / (shape[1] + 1), dtype)
        _all_forms(bench, dtype, misaligned, x, labels, bench.array(labels, dtype, misaligned))


def _all_forms(bench: Bench, dtype: str, misaligned: bool, x: Array, dense: Array,
               labels: object) -> None:
    losses, probs = meant(softmax_cross_entropy_, x, dense)
    there, what = bench.array(x, dtype, misaligned), str(x.shape)
    bench.same(f"{what} loss", kernels.cross_entropy_loss(bench.gpu, there, labels), losses)
    loss, probabilities = kernels.cross_entropy(bench.gpu, there, labels)
    bench.same(f"{what} loss beside probabilities", loss, losses)
    bench.same(f"{what} probabilities", probabilities, probs)
    weights = drawn(x.shape[:1], 5, dtype=dtype)
    loss, gradient = kernels.cross_entropy_and_gradient(
        bench.gpu, there, labels, bench.array(weights, dtype), scale=0.5)
    bench.same(f"{what} loss beside the gradient", loss, losses)
    bench.same(f"{what} gradient", gradient,
               meant(cross_entropy_grad_, 0.5 * weights, probs, dense))


def _grad(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in ((0, 3), (2, 0), (1, 1), (37, 3), (9, 33), (6, 64), (3, 1000), (2, 5001),
                  (2, 8200)):
        probs, a = drawn(shape, 0, 0.0, 1.0, dtype), drawn(shape[:1], 1, dtype=dtype)
        classes, dense = _classes(shape[:1], shape[1]), drawn(shape, 2, 0.0, 1.0, dtype)
        there = bench.array(a, dtype), bench.array(probs, dtype, misaligned)
        got = kernels.cross_entropy_grad(bench.gpu, *there, bench.array(classes, "int64"))
        bench.same(f"{shape} of classes", got, meant(sparse_cross_entropy_grad_, a, probs, classes))
        got = kernels.cross_entropy_grad(bench.gpu, *there, bench.array(dense, dtype, misaligned))
        bench.same(f"{shape} of dense labels", got, meant(cross_entropy_grad_, a, probs, dense))


def _in_place(bench: Bench, dtype: str) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        if shape[1]:
            x, labels = scores(shape, dtype), _classes(shape[:1], shape[1])
            losses, probs = meant(sparse_softmax_cross_entropy_, x, labels)
            there, ones = bench.array(x, dtype), np.ones(shape[:1])
            loss, gradient = kernels.cross_entropy_and_gradient(
                bench.gpu, there, bench.array(labels, "int64"), in_place=True)
            assert gradient is there
            bench.same(f"{shape} loss", loss, losses)
            bench.same(f"{shape} gradient over the logits", there,
                       meant(sparse_cross_entropy_grad_, ones, probs, labels))


def _loss_extremes(bench: Bench, dtype: str) -> None:
    for cols in (7, 2 * 32 * ONE_ROW[numpy_dtype(dtype).itemsize].long):
        x = extremes(dtype, cols)
        labels = np.array([0, 0, 1, 1, 2, 3])
        logs, probs = meant(log_softmax_, x, axis=1), meant(softmax_, x, axis=1)
        there = bench.array(x, dtype)
        loss, second = kernels.cross_entropy(bench.gpu, there, bench.array(labels, "int32"))
        bench.same(f"[{cols}] loss", loss, -logs[np.arange(6), labels])
        bench.same(f"[{cols}] probabilities", second, probs)
        ones = np.ones_like(x)
        loss, second = kernels.cross_entropy(bench.gpu, there, bench.array(ones, dtype))
        bench.same(f"[{cols}] loss of dense labels", loss, -logs.sum(axis=-1))
        bench.same(f"[{cols}] probabilities of dense labels", second, probs)


def _no_class(bench: Bench, dtype: str) -> None:
    for cols in (3, 40, 2 * 32 * ONE_ROW[numpy_dtype(dtype).itemsize].long):
        x = drawn((4, cols), dtype=dtype)
        labels = np.array([-1, cols, 2, np.iinfo(np.int64).max])
        wrong = np.array([True, True, False, True])
        losses, probs = meant(sparse_softmax_cross_entropy_, x, np.full(4, 2))
        there, classes = bench.array(x, dtype), bench.array(labels, "int64")
        loss, second = kernels.cross_entropy(bench.gpu, there, classes)
        bench.same(f"[{cols}] loss", loss, np.where(wrong, np.nan, losses))
        bench.same(f"[{cols}] probabilities", second, np.where(wrong[:, None], np.nan, probs))
        _, second = kernels.cross_entropy_and_gradient(bench.gpu, there, classes)
        bench.same(f"[{cols}] gradient", second, np.where(
            wrong[:, None], np.nan, probs - _one_hot(np.full(4, 2), cols)))


def _integers(bench: Bench, integer: str) -> None:
    x, labels = drawn((6, 100)), np.array([0, 99, 7, 55, 1, 98])
    loss = kernels.cross_entropy_loss(bench.gpu, bench.array(x, "float32"),
                                      bench.array(labels, integer))
    bench.same("loss", loss, meant(sparse_softmax_cross_entropy_, x, labels)[0])


def _unserved(bench: Bench) -> None:
    x, g = bench.array([[1, 2]], "int32"), bench.array([[1, 2]], "float32")
    assert kernels.softmax(bench.gpu, x) is None
    assert kernels.logsumexp(bench.gpu, x) is None
    assert kernels.softmax_grad(bench.gpu, x, g) is None
    x = bench.array(np.zeros((2, 3)), "float32")
    assert kernels.cross_entropy(bench.gpu, x, bench.array([1, 2, 3], "int32")) is None
    assert kernels.cross_entropy(bench.gpu, x, bench.array(np.zeros((2, 3)), "float64")) is None
    assert kernels.cross_entropy_loss(bench.gpu, bench.array([[1]], "int32"),
                                      bench.array([0], "int32")) is None

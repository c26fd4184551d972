"""Checks of kernels/cross_entropy.cu and kernels/cross_entropy_grad.cu."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtape.core.dtypes import FLOATS, INTEGERS
from gtape.devices.cuda.kernels import cross_entropy as kernels
from gtape.devices.cuda.kernels.row_geometry import ONE_ROW, TWO_ROWS
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.kernelcheck.checks.rows import extremes, scores, shapes
from gtape.ops.nn.losses import (
    cross_entropy_grad_,
    softmax_cross_entropy_,
    sparse_cross_entropy_grad_,
    sparse_softmax_cross_entropy_,
)
from gtape.ops.nn.softmax import log_softmax_, softmax_

Array = np.ndarray


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        for misaligned in (False, True):
            said = f"{dtype}{' misaligned' * misaligned}"
            yield Check(f"cross_entropy of classes {said}",
                        partial(_sparse, dtype=dtype, misaligned=misaligned))
            yield Check(f"cross_entropy of dense labels {said}",
                        partial(_dense, dtype=dtype, misaligned=misaligned))
            yield Check(f"cross_entropy_grad {said}",
                        partial(_grad, dtype=dtype, misaligned=misaligned))
        yield Check(f"cross_entropy in place {dtype}", partial(_in_place, dtype=dtype))
        yield Check(f"cross_entropy of nan and inf {dtype}", partial(_extremes, dtype=dtype))
        yield Check(f"cross_entropy of labels that are no class {dtype}",
                    partial(_no_class, dtype=dtype))
    for integer in INTEGERS:
        yield Check(f"cross_entropy of classes in {integer}", partial(_integers, integer=integer))
    yield Check("cross_entropy of other arrays is not served", _unserved)


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
        bench.same(f"{shape} of classes", got,
                   meant(sparse_cross_entropy_grad_, a, probs, classes))
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


def _extremes(bench: Bench, dtype: str) -> None:
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
    x = bench.array(np.zeros((2, 3)), "float32")
    assert kernels.cross_entropy(bench.gpu, x, bench.array([1, 2, 3], "int32")) is None
    assert kernels.cross_entropy(bench.gpu, x, bench.array(np.zeros((2, 3)), "float64")) is None
    assert kernels.cross_entropy_loss(bench.gpu, bench.array([[1]], "int32"),
                                      bench.array([0], "int32")) is None

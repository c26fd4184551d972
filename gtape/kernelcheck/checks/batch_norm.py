"""Checks of kernels/batch_norm.cu."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.batch_norm import (
    batch_norm,
    batch_norm_backward,
    batch_norm_training,
)
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.ops.nn import normalization as ops

_EPS = 1e-3
#: Tiles of one lane and of 32, several tiles, several chunks; odd channels take the narrow path.
_SHAPES = ((1, 1), (5, 0), (700, 3), (300, 8), (9, 31), (90, 33), (2, 3, 5, 64), (130, 256),
           (3, 1000), (4, 2, 1025))


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        for misaligned in (False, True):
            yield Check(f"batch_norm {dtype}{' misaligned' * misaligned}",
                        partial(_shapes, dtype=dtype, misaligned=misaligned))
        yield Check(f"batch_norm of nan and inf {dtype}", partial(_extremes, dtype=dtype))
        yield Check(f"batch_norm of no rows {dtype}", partial(_no_rows, dtype=dtype))
    yield Check("batch_norm far from 0", _far)


def _shapes(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in _SHAPES:
        _compare(bench, drawn(shape, 1, dtype=dtype), dtype, misaligned)


def _compare(bench: Bench, x: np.ndarray, dtype: str, misaligned: bool = False,
             tolerance: float | None = None) -> None:
    cols, over = x.shape[-1:], tuple(range(x.ndim - 1))
    scale, shift = drawn(cols, 3, 0.5, 1.5, dtype), drawn(cols, 4, -1, 1, dtype)
    g = drawn(x.shape, 2, -1, 1, dtype)
    d, s, b, c = (bench.array(v, dtype, misaligned) for v in (x, scale, shift, g))
    y, mean, variance = batch_norm_training(bench.gpu, d, s, b, _EPS)
    right, *statistics = meant(ops.batch_norm_training, x, scale, shift, axes=over, eps=_EPS)
    grads = meant(ops.batch_norm_grad_, g, x, scale, *statistics, axes=over, eps=_EPS,
                  shift_shape=cols)
    bench.same(f"{x.shape} mean", mean, statistics[0].reshape(cols), tolerance)
    bench.same(f"{x.shape} variance", variance, statistics[1].reshape(cols), tolerance)
    bench.same(f"{x.shape} y", y, right, tolerance)
    got = batch_norm_backward(bench.gpu, c, d, s, mean, variance, _EPS)
    for name, gradient, right in zip(("x", "scale", "shift"), got, grads, strict=True):
        bench.same(f"{x.shape} gradient of {name}", gradient, right, tolerance)
    positive = drawn(cols, 5, 0.5, 2.0, dtype)
    inferred = batch_norm(bench.gpu, d, b, bench.array(positive, dtype), s, b, _EPS)
    bench.same(f"{x.shape} inference", inferred,
               meant(ops.batch_norm_, x, shift, positive, shift, scale, eps=_EPS), tolerance)


def _extremes(bench: Bench, dtype: str) -> None:
    x = drawn((50, 40), 1, dtype=dtype)
    x[3, 5] = np.nan
    x[7, 11] = np.inf
    _compare(bench, x, dtype)


def _no_rows(bench: Bench, dtype: str) -> None:
    x, one = bench.array(np.zeros((0, 3)), dtype), bench.array(np.ones(3), dtype)
    y, mean, variance = batch_norm_training(bench.gpu, x, one, one, _EPS)
    bench.same("y", y, np.zeros((0, 3)))
    bench.same("mean", mean, np.full(3, np.nan))
    bench.same("variance", variance, np.full(3, np.nan))
    d_x, _, d_shift = batch_norm_backward(bench.gpu, x, x, one, mean, variance, _EPS)
    bench.same("gradient of x", d_x, np.zeros((0, 3)))
    bench.same("gradient of shift", d_shift, np.zeros(3))


def _far(bench: Bench) -> None:
    """The variance of numbers near 1000 is not lost, as it would be in the mean of squares less
    the square of the mean."""
    for shape in ((700, 8), (3000, 3)):
        _compare(bench, drawn(shape, 1, 999.0, 1001.0), "float32", tolerance=5e-4)

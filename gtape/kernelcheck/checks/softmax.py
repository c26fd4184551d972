"""Checks of kernels/softmax.cu and kernels/softmax_grad.cu."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import softmax as kernels
from gtape.devices.cuda.kernels.row_geometry import ONE_ROW, TWO_ROWS
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.kernelcheck.checks.rows import extremes, scores, shapes
from gtape.ops.nn.softmax import log_softmax_, log_softmax_grad_, softmax_, softmax_grad_
from gtape.ops.reductions.sums import reduce_logsumexp_

Array = np.ndarray


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        for misaligned in (False, True):
            said = " misaligned" * misaligned
            for name, run in (("softmax", _softmax), ("log_softmax", _log_softmax),
                              ("logsumexp", _logsumexp), ("softmax_grad", _softmax_grad),
                              ("log_softmax_grad", _log_softmax_grad),
                              ("logsumexp_grad", _logsumexp_grad)):
                yield Check(f"{name} {dtype}{said}", partial(run, dtype=dtype,
                                                             misaligned=misaligned))
        yield Check(f"softmax of nan and inf {dtype}", partial(_extremes, dtype=dtype))
        yield Check(f"softmax of large numbers {dtype}", partial(_large, dtype=dtype))
        yield Check(f"softmax of other axes {dtype}", partial(_axes, dtype=dtype))
    yield Check("softmax of integers is not served", _unserved)


def _shares(x: Array) -> Array:
    return meant(softmax_, x, axis=x.ndim - 1)


def _logs(x: Array) -> Array:
    return meant(log_softmax_, x, axis=x.ndim - 1)


def _sums(x: Array) -> Array:
    return meant(reduce_logsumexp_, x, axis=(x.ndim - 1,), keepdims=False)


def _forward(bench: Bench, dtype: str, misaligned: bool, run: Callable[..., Any],
             reference: Callable[[Array], Array]) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        x = scores(shape, dtype)
        bench.same(str(shape), run(bench.gpu, bench.array(x, dtype, misaligned)), reference(x))


def _softmax(bench: Bench, dtype: str, misaligned: bool) -> None:
    _forward(bench, dtype, misaligned, kernels.softmax, _shares)


def _log_softmax(bench: Bench, dtype: str, misaligned: bool) -> None:
    _forward(bench, dtype, misaligned, kernels.log_softmax, _logs)


def _logsumexp(bench: Bench, dtype: str, misaligned: bool) -> None:
    _forward(bench, dtype, misaligned, kernels.logsumexp, _sums)


def _backward(bench: Bench, dtype: str, misaligned: bool, run: Callable[..., object],
              result: Callable[[Array], Array],
              reference: Callable[[Array, Array], Array]) -> None:
    for shape in shapes(bench.gpu, dtype, TWO_ROWS):
        y = _rounded(result(scores(shape, dtype)), dtype)
        g = drawn(shape, 2, dtype=dtype)
        got = run(bench.gpu, bench.array(g, dtype, misaligned), bench.array(y, dtype, misaligned))
        bench.same(str(shape), got, reference(g, y))


def _softmax_grad(bench: Bench, dtype: str, misaligned: bool) -> None:
    _backward(bench, dtype, misaligned, kernels.softmax_grad, _shares,
              partial(meant, softmax_grad_, axis=1))


def _log_softmax_grad(bench: Bench, dtype: str, misaligned: bool) -> None:
    _backward(bench, dtype, misaligned, kernels.log_softmax_grad, _logs,
              partial(meant, log_softmax_grad_, axis=1))


def _logsumexp_grad(bench: Bench, dtype: str, misaligned: bool) -> None:
    for shape in shapes(bench.gpu, dtype, ONE_ROW):
        x, g = scores(shape, dtype), drawn(shape[:-1], 2, dtype=dtype)
        got = kernels.logsumexp_grad(bench.gpu, bench.array(g, dtype), bench.array(x, dtype,
                                                                                   misaligned))
        bench.same(str(shape), got, _shares(x) * g[..., None])


def _rounded(values: Array, dtype: str) -> Array:
    return values.astype(numpy_dtype(dtype)).astype(np.float64)


def _extremes(bench: Bench, dtype: str) -> None:
    long = shapes(bench.gpu, dtype, ONE_ROW)[-1][1]
    for cols in (7, 40, 2 * 32 * ONE_ROW[numpy_dtype(dtype).itemsize].long, long):
        x = extremes(dtype, cols)
        if cols == long:
            x = x[:5:2]
        there = bench.array(x, dtype)
        bench.same(f"softmax [{cols}]", kernels.softmax(bench.gpu, there), _shares(x))
        bench.same(f"log_softmax [{cols}]", kernels.log_softmax(bench.gpu, there), _logs(x))
        bench.same(f"logsumexp [{cols}]", kernels.logsumexp(bench.gpu, there), _sums(x))
        alone = bench.array(np.full((3, cols), -np.inf), dtype)
        got = kernels.logsumexp_grad(bench.gpu, bench.array(np.ones(3), dtype), alone)
        bench.same(f"logsumexp_grad of -inf alone [{cols}]", got, np.zeros((3, cols)))


def _large(bench: Bench, dtype: str) -> None:
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


def _unserved(bench: Bench) -> None:
    x, g = bench.array([[1, 2]], "int32"), bench.array([[1, 2]], "float32")
    assert kernels.softmax(bench.gpu, x) is None
    assert kernels.logsumexp(bench.gpu, x) is None
    assert kernels.softmax_grad(bench.gpu, x, g) is None

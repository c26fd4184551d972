"""Checks of the normalisations of rows and of channels, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import normalization as kernels
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.ops.nn import normalization as ops

Array = np.ndarray
#: (run, x, scale, shift, g) -> (y, *statistics, *gradients); `run` is called with a host function,
#: the op that it serves, arrays and attributes, and takes the one or the other.
Steps = Callable[..., tuple[Any, ...]]
#: So large that short rows of nearly equal numbers have no large gradients; and that of Keras'
#: BatchNormalization.
_ROW_EPS, _CHANNEL_EPS = 0.1, 1e-3
#: Every way to hold a row: lanes, warps, blocks; rows that fill it, and rows that do not.
_ROWS = ((0, 5), (5, 0), (1, 1), (600, 3), (70, 8), (9, 31), (9, 33), (6, 64), (7, 250),
         (5, 512), (3, 1000), (2, 1025), (2, 3000))
#: Past what registers hold, first in one direction and then in both.
_LONG = {"float16": (8200, 32776), "bfloat16": (8200, 32776),
         "float32": (8196, 16388), "float64": (4098, 8194)}
#: Tiles of one lane and of 32, several tiles, several chunks; odd channels take the narrow path.
_CHANNELS = ((1, 1), (700, 3), (300, 8), (9, 31), (90, 33), (2, 3, 5, 64), (130, 256), (3, 1000),
             (4, 2, 1025))


def checks() -> Iterator[Check]:
    for name, steps, shapes in (("layer_norm", _layer, _ROWS), ("rms_norm", _rms, _ROWS),
                                ("batch_norm", _batch, _CHANNELS)):
        rows = shapes is _ROWS
        compare = partial(_compare, steps)
        for dtype in FLOATS:
            for misaligned in (False, True):
                yield Check(f"{name} {dtype}{' misaligned' * misaligned}", partial(
                    _shapes, compare, shapes, dtype, misaligned))
            yield Check(f"{name} of nan and inf {dtype}", partial(_extremes, compare, dtype))
            if rows:
                yield Check(f"{name} of long rows {dtype}", partial(_long, compare, dtype))
        if rows:
            yield Check(f"{name} of rank 3", partial(_shapes, compare, (
                (3, 4, 40), (40,), (2, 0, 3)), "float32", False))
        yield Check(f"{name} far from 0", partial(_far, compare, (
            (2, 24), (2, 1000), (2, 16388)) if rows else ((700, 8), (3000, 3))))
    for dtype in FLOATS:
        yield Check(f"batch_norm of inference {dtype}", partial(_inference, dtype))
    yield Check("batch_norm of no elements is not served", _unserved)


def _layer(run: Callable[..., Any], x: Any, scale: Any, shift: Any, g: Any) -> tuple[Any, ...]:
    along = {"axes": (x.ndim - 1,)}
    y, *kept = run(kernels.layer_norm, ops.layer_norm, x, scale, shift, eps=_ROW_EPS, **along)
    return y, *kept, *run(kernels.layer_norm_grad, ops.layer_norm_grad_, g, x, scale, *kept,
                          shift_shape=shift.shape, **along)


def _rms(run: Callable[..., Any], x: Any, scale: Any, shift: Any, g: Any) -> tuple[Any, ...]:
    along = {"axes": (x.ndim - 1,)}
    y, factor = run(kernels.rms_norm, ops.rms_norm, x, scale, eps=_ROW_EPS, **along)
    return y, factor, *run(kernels.rms_norm_grad, ops.rms_norm_grad_, g, x, scale, factor, **along)


def _batch(run: Callable[..., Any], x: Any, scale: Any, shift: Any, g: Any) -> tuple[Any, ...]:
    over = {"axes": tuple(range(x.ndim - 1)), "eps": _CHANNEL_EPS}
    y, *kept = run(kernels.batch_norm_training, ops.batch_norm_training, x, scale, shift, **over)
    return y, *kept, *run(kernels.batch_norm_grad, ops.batch_norm_grad_, g, x, scale, *kept,
                          shift_shape=shift.shape, **over)


def _compare(steps: Steps, bench: Bench, x: Array, dtype: str, misaligned: bool = False,
             tolerance: float | None = None) -> None:
    cols = x.shape[-1:]
    given = (x, drawn(cols, 3, 0.5, 1.5, dtype), drawn(cols, 4, -1, 1, dtype),
             drawn(x.shape, 2, -1, 1, dtype))
    arrays = [bench.array(v, dtype, misaligned) for v in given]
    got = steps(lambda kernel, _, *a, **attrs: kernel(bench.gpu, *a, **attrs), *arrays)
    with np.errstate(all="ignore"):
        wanted = steps(lambda _, op, *a, **attrs: meant(op, *a, **attrs), *given)
    for index, (value, right) in enumerate(zip(got, wanted, strict=True)):
        bench.same(f"{x.shape} result {index}", value, right, tolerance)


def _shapes(compare: Callable[..., None], shapes: tuple[tuple[int, ...], ...], dtype: str,
            misaligned: bool, bench: Bench) -> None:
    for shape in shapes:
        compare(bench, drawn(shape, 1, dtype=dtype), dtype, misaligned)


def _long(compare: Callable[..., None], dtype: str, bench: Bench) -> None:
    for cols in (*_LONG[dtype], _LONG[dtype][-1] + 1):
        compare(bench, drawn((2, cols), 1, dtype=dtype), dtype)


def _extremes(compare: Callable[..., None], dtype: str, bench: Bench) -> None:
    for cols in (3, 40, 1000):
        x = drawn((4, cols), 1, 0.0, 2.0, dtype)
        x[1, cols // 2] = np.nan
        x[2, 0] = np.inf
        compare(bench, x, dtype)


def _far(compare: Callable[..., None], shapes: tuple[tuple[int, ...], ...], bench: Bench) -> None:
    """The variance of numbers near 1000 is not lost, as it would be in the mean of squares less
    the square of the mean."""
    for shape in shapes:
        compare(bench, drawn(shape, 1, 999.0, 1001.0), "float32", tolerance=5e-4)


def _inference(dtype: str, bench: Bench) -> None:
    """Statistics that are given, of the dtype of x."""
    for shape in _CHANNELS:
        x, cols = drawn(shape, 1, dtype=dtype), shape[-1:]
        given = (x, *(drawn(cols, seed, 0.5, 2.0, dtype) for seed in (4, 5, 6, 7)))
        there, mean, variance, shift, scale = (bench.array(v, dtype) for v in given)
        got = kernels.batch_norm(bench.gpu, there, mean, variance, shift, scale, _CHANNEL_EPS)
        bench.same(f"{shape} inference", got, meant(ops.batch_norm_, *given, eps=_CHANNEL_EPS))


def _unserved(bench: Bench) -> None:
    for shape in ((5, 0), (0, 3)):
        x, one = (bench.array(np.ones(s), "float32") for s in (shape, shape[1:]))
        assert kernels.batch_norm_training(bench.gpu, x, one, one, (0,), _CHANNEL_EPS) is None

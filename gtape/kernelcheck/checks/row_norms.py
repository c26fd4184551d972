"""Checks of both normalisations of rows: shapes, and what a float64 reference gives for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.kernelcheck.checks.bench import Bench, Check, drawn

Array = np.ndarray
#: (bench, x, scale, shift, g) -> (y, statistics, gradients), by the kernels or by the reference.
Runs = Callable[..., tuple[Any, tuple[Any, ...], tuple[Any, ...]]]
#: So large that rows of nearly equal numbers have no large gradients.
EPS = 0.1
#: Every way to hold a row: lanes, warps, blocks; rows that fill it, and rows that do not.
_SHAPES = ((0, 5), (5, 0), (1, 1), (600, 3), (70, 8), (9, 31), (9, 33), (6, 64), (7, 250),
           (5, 512), (3, 1000), (2, 1025), (2, 3000))
#: Past what registers hold, first in one direction and then in both.
_LONG = {"float16": (8200, 32776), "bfloat16": (8200, 32776),
         "float32": (8196, 16388), "float64": (4098, 8194)}


def row_norm_checks(name: str, kernels: Runs, reference: Runs) -> Iterator[Check]:
    """The checks of the normalisation called `name`."""
    for dtype in FLOATS:
        for misaligned in (False, True):
            yield Check(f"{name} {dtype}{' misaligned' * misaligned}", partial(
                _shapes, kernels=kernels, reference=reference, dtype=dtype,
                misaligned=misaligned))
        yield Check(f"{name} of long rows {dtype}", partial(
            _long, kernels=kernels, reference=reference, dtype=dtype))
        yield Check(f"{name} of nan and inf {dtype}", partial(
            _extremes, kernels=kernels, reference=reference, dtype=dtype))
    yield Check(f"{name} of rank 3", partial(_rank, kernels=kernels, reference=reference))
    yield Check(f"{name} far from 0", partial(_far, kernels=kernels, reference=reference))


def _compare(bench: Bench, kernels: Runs, reference: Runs, x: Array, dtype: str,
             misaligned: bool = False, tolerance: float | None = None) -> None:
    cols = x.shape[-1:]
    given = (x, drawn(cols, 3, 0.5, 1.5, dtype), drawn(cols, 4, -1, 1, dtype),
             drawn(x.shape, 2, -1, 1, dtype))
    got = kernels(bench, *(bench.array(v, dtype, misaligned) for v in given))
    with np.errstate(all="ignore"):
        wanted = reference(bench, *given)
    what = f"{x.shape}"
    bench.same(f"{what} y", got[0], wanted[0], tolerance)
    for index, (value, right) in enumerate(zip(got[1], wanted[1], strict=True)):
        bench.same(f"{what} statistic {index}", value, right, tolerance)
    for index, (value, right) in enumerate(zip(got[2], wanted[2], strict=True)):
        bench.same(f"{what} gradient {index}", value, right, tolerance)


def _shapes(bench: Bench, kernels: Runs, reference: Runs, dtype: str, misaligned: bool) -> None:
    for shape in _SHAPES:
        _compare(bench, kernels, reference, drawn(shape, 1, dtype=dtype), dtype, misaligned)


def _long(bench: Bench, kernels: Runs, reference: Runs, dtype: str) -> None:
    for cols in _LONG[dtype]:
        _compare(bench, kernels, reference, drawn((2, cols), 1, dtype=dtype), dtype)
    _compare(bench, kernels, reference, drawn((2, _LONG[dtype][-1] + 1), 1, dtype=dtype), dtype)


def _extremes(bench: Bench, kernels: Runs, reference: Runs, dtype: str) -> None:
    for cols in (3, 40, 1000):
        x = drawn((4, cols), 1, 0.0, 2.0, dtype)
        x[1, cols // 2] = np.nan
        x[2, 0] = np.inf
        _compare(bench, kernels, reference, x, dtype)


def _rank(bench: Bench, kernels: Runs, reference: Runs) -> None:
    for shape in ((3, 4, 40), (40,), (2, 0, 3)):
        _compare(bench, kernels, reference, drawn(shape, 1), "float32")


def _far(bench: Bench, kernels: Runs, reference: Runs) -> None:
    """The variance of numbers near 1000 is not lost, as it would be in the mean of squares less
    the square of the mean."""
    for cols in (24, 1000, 16388):
        x = drawn((2, cols), 1, 999.0, 1001.0)
        _compare(bench, kernels, reference, x, "float32", tolerance=5e-4)

"""Checks of the variances of `kernels/variance.cu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels.variances import variance
from gtape.kernelcheck.checks.bench import Bench, Check, drawn, meant
from gtape.kernelcheck.checks.reductions import LONG, SHAPES
from gtape.ops.reductions.moments import reduce_variance_


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        yield Check(f"variance {dtype}", _shapes(dtype))
    yield Check("far from zero", _far)
    yield Check("nan, inf and no elements", _specials)
    yield Check("transposed", _transposed)


def _shapes(dtype: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for shape, axes in SHAPES + LONG:
            x = drawn(shape, len(shape), dtype=dtype)
            for misaligned in (False, True):
                array = bench.array(x, dtype, misaligned).reshape(shape)
                got = variance(bench.gpu, array, axes, keepdims=misaligned)
                wanted = meant(reduce_variance_, x, axis=axes, keepdims=misaligned)
                bench.same(f"{shape} over {axes}", got, wanted)

    return run


def _variance(x: np.ndarray, axis: int) -> Any:
    return meant(reduce_variance_, x, axis=(axis,), keepdims=False)


def _far(bench: Bench) -> None:
    """Σ x² - n mean² in float32 would give noise, or less than 0."""
    for shape, axis in ((3, 3000), 1), ((3000, 3), 0), ((40_000,), 0):
        x = drawn(shape, 1, 1e4, 1e4 + 1)
        got = variance(bench.gpu, bench.array(x, "float32"), (axis,))
        bench.same(f"{shape}", got, _variance(x, axis), 2e-3)
    huge = np.full((2, 100), 1e30)
    bench.same("huge", variance(bench.gpu, bench.array(huge, "float32"), (1,)), np.zeros(2))


def _specials(bench: Bench) -> None:
    x = drawn((3, 200), 2)
    x[0, 3], x[1, 199] = np.nan, np.inf
    for given, axis in (x, 1), (np.ascontiguousarray(x.T), 0):
        got = variance(bench.gpu, bench.array(given, "float32"), (axis,))
        bench.same("nan and inf", got, _variance(given, axis))
    nothing = bench.array(np.zeros((0, 2)), "float32")
    bench.same("no elements", variance(bench.gpu, nothing, (0,)), np.full(2, np.nan))


def _transposed(bench: Bench) -> None:
    x = drawn((20, 30), 4)
    got = variance(bench.gpu, bench.gpu.xp.transpose(bench.array(x, "float32")), (0,))
    bench.same("transposed", got, _variance(x.T, 0))

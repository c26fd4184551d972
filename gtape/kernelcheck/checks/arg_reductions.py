"""Checks of the positions of extremes of `kernels/arg_reduce.cu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gtape.core.dtypes import FLOATS, as_dtype
from gtape.devices.cuda.kernels.arg_reductions import arg_extreme
from gtape.devices.cuda.kernels.reductions import SERVED
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong
from gtape.kernelcheck.checks.reductions import values

#: Lone elements, lanes, edges off the vector width, columns; the last ones take several blocks.
_SHAPES = (((1,), 0), ((3,), 0), ((33,), 0), ((5, 7), 1), ((70, 4), 1), ((2, 1003), 1), ((6, 5), 0),
           ((33, 32), 0), ((40, 33), 0), ((2, 9, 16), 1), ((3, 4, 5), 0), ((2, 0), 0),
           ((9000,), 0), ((2, 16_400), 1), ((2051, 3), 0), ((2, 1100, 5), 1))


def checks() -> Iterator[Check]:
    for dtype in SERVED["Max"]:
        for largest in (True, False):
            yield Check(f"arg{'max' if largest else 'min'} {dtype}", _shapes(dtype, largest))
    for dtype in FLOATS:
        yield Check(f"nan and inf {dtype}", _specials(dtype))
    yield Check("ties", _ties)
    yield Check("transposed", _transposed)


def _compare(bench: Bench, array: np.ndarray, x: np.ndarray, axis: int, largest: bool,
             dtype: str) -> None:
    got = arg_extreme(bench.gpu, array, axis, largest, as_dtype(dtype))
    wanted = (np.argmax if largest else np.argmin)(x, axis=axis)
    if got.dtype.name != dtype:
        raise Wrong(f"the positions are {got.dtype.name}, and {dtype} was asked for")
    bench.same(f"{x.shape} along {axis}", got, wanted)


def _shapes(dtype: str, largest: bool) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for k, (shape, axis) in enumerate(_SHAPES):
            x = values("Max", dtype, shape, k)
            array = bench.array(x, dtype, misaligned=k % 2 == 1)
            _compare(bench, array, x, axis, largest, "int64" if k % 3 else "int32")
            if k % 5 == 0:
                _compare(bench, bench.array(x, dtype), x, axis, largest, "int64")

    return run


def _specials(dtype: str) -> Callable[[Bench], None]:
    """The first nan is the position of both extremes; infinities are elements like others."""
    def run(bench: Bench) -> None:
        x = values("Max", dtype, (6, 300))
        x[0, (7, 200)] = x[1, (299, 298)] = np.nan
        x[2], x[3] = np.inf, -np.inf
        x[4, (3, 9)], x[5] = (np.inf, -np.inf), np.nan
        for largest in (True, False):
            _compare(bench, bench.array(x, dtype), x, 1, largest, "int64")
            _compare(bench, bench.array(np.ascontiguousarray(x.T), dtype), x.T, 0, largest, "int64")

    return run


def _ties(bench: Bench) -> None:
    for shape, axis in ((9000,), 0), ((2051, 3), 0), ((3, 500), 1):
        x = np.random.default_rng(1).integers(0, 3, shape)
        for dtype in ("float32", "int8", "bool"):
            for largest in (True, False):
                _compare(bench, bench.array(x, dtype), x.astype(dtype), axis, largest, "int64")


def _transposed(bench: Bench) -> None:
    x = values("Max", "float32", (20, 30))
    array = bench.gpu.xp.transpose(bench.array(x, "float32"))
    for axis in (0, 1):
        _compare(bench, array, x.T, axis, True, "int32")

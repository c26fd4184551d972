"""Cases of the running sums, products and log-sum-exps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtape.devices.cuda.kernels import cumulative
from gtape.kernelcheck.checks.bench import Bench, Check, drawn

#: Shapes and the axis. The long ones are cut into segments.
_CASES = (((1,), 0), ((3,), 0), ((31,), 0), ((2, 1003), 1), ((3, 64), 1), ((0, 5), 1), ((4, 0), 1),
          ((5, 3), 0), ((7, 33), 0), ((2, 9, 16), 1), ((70000,), 0), ((1100, 8), 0), ((1, 4112), 1))
_FOLD = {"sum": np.add, "product": np.multiply, "logsumexp": np.logaddexp}


def checks() -> Iterator[Check]:
    for operation in cumulative.OPERATIONS:
        for dtype in cumulative.FLOATS if operation == "logsumexp" else cumulative.DTYPES:
            for misaligned in (False, True):
                yield Check(f"cumulative {operation} {dtype}{' misaligned' * misaligned}",
                            partial(_cumulative, operation, dtype, misaligned))
    yield Check("cumulative sum of more rows than blocks", _many_rows)


def _many_rows(bench: Bench) -> None:
    x = drawn((300, 140), 12)
    got = cumulative.cumulative(bench.gpu, bench.array(x, "float32"), 1)
    bench.same("cumulative sum of (300, 140)", got, np.cumsum(x, 1), 4e-6)


def _reference(x: np.ndarray, axis: int, operation: str, reverse: bool,
               exclusive: bool) -> np.ndarray:
    moved = np.moveaxis(x, axis, 0)
    moved = moved[::-1] if reverse else moved
    running = _FOLD[operation].accumulate(moved, axis=0) if moved.shape[0] else moved
    if exclusive and moved.shape[0]:
        start = {"sum": 0, "product": 1, "logsumexp": -np.inf}[operation]
        running = np.concatenate([np.full_like(moved[:1], start), running[:-1]])
    return np.moveaxis(running[::-1] if reverse else running, 0, axis)


def _drawn(shape: tuple[int, ...], operation: str, dtype: str) -> np.ndarray:
    if "int" in dtype:
        # Products of these stay within 32 bits.
        draws = np.random.default_rng(6).integers(-9, 10, shape)
        return draws if operation == "sum" else np.where(draws > 0, 1, -1)
    if operation == "product":
        # Near 1, so that nothing overflows; long products of rounded numbers drift, so long ones
        # are of signs.
        near = drawn(shape, 6, 0.99, 1.01, dtype)
        return near if near.size < 5000 else np.where(near > 1, 1.0, -1.0)
    return drawn(shape, 6, -2, 2, dtype)


def _cumulative(operation: str, dtype: str, misaligned: bool, bench: Bench) -> None:
    for number, (shape, axis) in enumerate(_CASES):
        x = _drawn(shape, operation, dtype)
        given = bench.array(x, dtype, misaligned)
        ways = ((False, False), (True, True)) if number % 2 else ((True, False), (False, True))
        for reverse, exclusive in ways[:1] if x.size > 5000 else ways:
            got = cumulative.cumulative(bench.gpu, given, axis, operation, reverse=reverse,
                                        exclusive=exclusive)
            wanted = _reference(x, axis, operation, reverse, exclusive)
            bench.same(f"cumulative {operation} {shape} along {axis}, reverse {reverse}, exclusive "
                       f"{exclusive}", got, wanted, 4e-6 if dtype == "float32" else None)
    if "float" in dtype:
        _extremes(operation, dtype, bench)


def _extremes(operation: str, dtype: str, bench: Bench) -> None:
    x = np.array([[1.0, -np.inf, -np.inf, 2.0, 0.5], [1.0, np.inf, 1.0, np.inf, 2.0],
                  [-np.inf, -np.inf, 3.0, np.nan, 1.0]])
    with np.errstate(all="ignore"):
        wanted = _reference(x, 1, operation, False, False)
    got = cumulative.cumulative(bench.gpu, bench.array(x, dtype), 1, operation)
    bench.same(f"cumulative {operation} of inf and nan", got, wanted)

"""Checks of pooling, convolution and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import windows as kernels
from gtape.devices.cuda.runtime.executor import Executor
from gtape.kernelcheck.checks.bench import TOLERANCE, Bench, Check, drawn
from gtape.numerics import convolution as convolutions
from gtape.numerics import pooling as pools
from gtape.numerics.windows import out_sizes


class WindowCase(NamedTuple):
    """The shape of x, the size of windows (of filters: their shape), how they lie over x, and the
    groups of channels."""

    x: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int = 1

    @property
    def outs(self) -> tuple[int, ...]:
        cells = self.size[:len(self.strides)]
        return out_sizes(self.x[1:-1], cells, self.strides, self.dilations, self.pads)


_NONE = ((0, 0), (0, 0))
#: Windows that touch, overlap and leave gaps, one to three axes, padding, no images, no channels.
_POOLS = (
    WindowCase((2, 6, 6, 8), (2, 2), (2, 2), (1, 1), _NONE),
    WindowCase((1, 7, 5, 3), (3, 3), (2, 2), (1, 1), ((1, 1), (0, 1))),
    WindowCase((1, 6, 7, 16), (2, 3), (1, 2), (2, 1), ((1, 1), (1, 1))),
    WindowCase((2, 9, 5), (3,), (2,), (2,), ((2, 1),)),
    WindowCase((2, 5, 4), (2,), (3,), (1,), ((0, 0),)),
    WindowCase((1, 4, 3, 5, 2), (2, 2, 3), (2, 1, 2), (1, 1, 1), ((0, 0), (1, 0), (1, 1))),
    WindowCase((0, 4, 4, 3), (2, 2), (2, 2), (1, 1), _NONE),
    WindowCase((3, 4, 0), (2,), (2,), (1,), ((0, 0),)),
    WindowCase((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), _NONE))
#: Odd and even channels, steps beyond the filter, gaps in it, groups, one to three axes, more
#: channels than a tile has, and no images or features at all.
_CONVOLUTIONS = (
    WindowCase((2, 5, 6, 3), (3, 3, 3, 5), (1, 1), (1, 1), ((1, 1), (1, 1))),
    WindowCase((1, 9, 8, 8), (3, 2, 8, 12), (2, 2), (1, 1), ((1, 0), (0, 1))),
    WindowCase((1, 7, 7, 4), (3, 3, 4, 8), (3, 1), (1, 2), ((2, 2), (2, 2))),
    WindowCase((1, 8, 9, 4), (2, 3, 4, 4), (2, 4), (2, 3), ((1, 1), (3, 3))),
    WindowCase((1, 6, 5, 4), (1, 1, 4, 8), (2, 3), (1, 1), _NONE),
    WindowCase((2, 6, 6, 8), (3, 3, 4, 16), (1, 2), (1, 1), ((1, 1), (1, 1)), 2),
    WindowCase((1, 4, 4, 6), (2, 2, 2, 9), (1, 1), (1, 1), _NONE, 3),
    WindowCase((3, 40, 5), (4, 5, 3), (2,), (1,), ((2, 1),)),
    WindowCase((1, 3, 4, 5, 2), (2, 2, 2, 2, 3), (1, 2, 1), (1, 1, 2), ((1, 0), (0, 1), (1, 1))),
    WindowCase((4, 9, 9, 68), (1, 1, 68, 72), (1, 1), (1, 1), _NONE),
    WindowCase((3, 8, 8, 4), (3, 3, 4, 132), (1, 1), (1, 1), ((1, 1), (1, 1))),
    WindowCase((4, 8, 8, 68), (2, 2, 68, 8), (2, 2), (1, 1), _NONE),
    WindowCase((1, 3, 3, 2), (3, 3, 2, 70), (1, 1), (1, 1), _NONE),
    WindowCase((4, 12, 12, 3), (3, 2, 3, 6), (1, 1), (1, 1), ((1, 1), (1, 0))),
    WindowCase((0, 4, 4, 2), (2, 2, 2, 2), (1, 1), (1, 1), _NONE),
    WindowCase((2, 3, 3, 2), (2, 2, 2, 0), (1, 1), (1, 1), _NONE))


def checks() -> Iterator[Check]:
    for dtype in kernels.ORDERED:
        for misaligned in (False, True):
            tail = f"{dtype}{' misaligned' * misaligned}"
            yield Check(f"max_pool {tail}", partial(_max_pool, dtype, misaligned))
            if dtype in FLOATS:
                yield Check(f"max_pool_grad {tail}", partial(_max_pool_grad, dtype, misaligned))
                yield Check(f"average_pool {tail}", partial(_average, dtype, misaligned))
                for multiprocessors, tiles in ((1, "large"), (64, "small")):
                    yield Check(f"convolution {tail}, {tiles} tiles",
                                partial(_convolution, dtype, multiprocessors, misaligned))


def _ties(case: WindowCase, dtype: str) -> np.ndarray:
    """Few distinct values, so that windows hold ties."""
    values = np.round(drawn(case.x, 7) * 3) / 2
    return np.round(values) if "int" in dtype else values


def _max_pool(dtype: str, misaligned: bool, bench: Bench) -> None:
    for case in _POOLS:
        x, how = _ties(case, dtype), case[1:5]
        if dtype in FLOATS and x.size > 4:
            x.reshape(-1)[[1, 4]] = np.nan, -np.inf
        got = kernels.max_pool(bench.gpu, bench.array(x, dtype, misaligned), *how)
        bench.same(f"max_pool {case}", got, pools.max_pool(np, x, *how))


def _max_pool_grad(dtype: str, misaligned: bool, bench: Bench) -> None:
    for case in _POOLS:
        x, how = _ties(case, dtype), case[1:5]
        if x.size > 4:
            x.reshape(-1)[1] = np.nan
        y = pools.max_pool(np, x, *how)
        a, b = drawn(y.shape, 8, dtype=dtype), drawn(x.shape, 9, dtype=dtype)
        winners = pools.winners(np, x, y, *how)
        given, values, cotangent, other = (bench.array(v, dtype, misaligned) for v in (x, y, a, b))
        bench.same(f"max_pool_grad {case}",
                   kernels.max_pool_grad(bench.gpu, cotangent, given, values, *how),
                   pools.unpool(np, a, winners, x.shape, *how))
        bench.same(f"max_pool_pick {case}",
                   kernels.max_pool_pick(bench.gpu, other, given, values, *how),
                   pools.pick(np, b, winners, *how))
        for batch in (True, False):
            bench.same(f"max_pool_index {case}, of the batch {batch}",
                       kernels.max_pool_index(bench.gpu, given, values, *how, batch=batch),
                       pools.flat_index(np, winners, x.shape, *how, batch))


def _average(dtype: str, misaligned: bool, bench: Bench) -> None:
    for case in _POOLS:
        x, how = drawn(case.x, 10, dtype=dtype), case[1:5]
        a = drawn((case.x[0], *case.outs, case.x[-1]), 11, dtype=dtype)
        bench.same(f"average_pool {case}",
                   kernels.average_pool(bench.gpu, bench.array(x, dtype, misaligned), *how),
                   pools.avg_pool(np, x, *how))
        got = kernels.average_pool_grad(bench.gpu, bench.array(a, dtype, misaligned), case.x, *how)
        bench.same(f"average_pool_grad {case}", got, pools.avg_pool_grad(np, a, case.x, *how))


@contextmanager
def _as_with(gpu: Executor, multiprocessors: int) -> Iterator[None]:
    """A device of few multiprocessors is filled by few large tiles, one of many by small ones."""
    real = gpu.multiprocessors
    gpu.multiprocessors = multiprocessors
    try:
        yield
    finally:
        gpu.multiprocessors = real


def _convolution(dtype: str, multiprocessors: int, misaligned: bool, bench: Bench) -> None:
    tolerance = max(4 * TOLERANCE["float32"], TOLERANCE[dtype]) if dtype != "float64" else None
    for case in _CONVOLUTIONS:
        how: tuple[Any, ...] = case[2:]
        hosts = [drawn(shape, seed, dtype=dtype) for seed, shape in enumerate(
            (case.x, case.size, (case.x[0], *case.outs, case.size[-1])))]
        x, filters, g = (bench.array(a, dtype, misaligned) for a in hosts)
        with _as_with(bench.gpu, multiprocessors):
            results = (kernels.convolve(bench.gpu, x, filters, *how),
                       kernels.input_gradient(bench.gpu, g, filters, case.x, *how),
                       kernels.filter_gradient(bench.gpu, x, g, case.size[:-2], *how))
        x, filters, g = hosts
        wanted = (convolutions.conv_forward(np, x, filters, *how),
                  convolutions.conv_input_grad(np, g, filters, case.x, *how),
                  convolutions.conv_filter_grad(np, x, g, case.size[:-2], *how))
        for what, got, reference in zip(("", ", input", ", filter"), results, wanted):
            bench.same(f"convolution{what} {case}", got, reference, tolerance)

"""Cases of convolution and its gradients for input and filter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from gtape.devices.cuda.kernels import convolution
from gtape.devices.cuda.runtime.executor import Executor
from gtape.kernelcheck.checks.bench import TOLERANCE, Bench, Check, drawn


class ConvolutionShape(NamedTuple):
    """The shapes of x and the filter, and how the filter lies over x."""

    x: tuple[int, ...]
    filters: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int = 1

    @property
    def y(self) -> tuple[int, ...]:
        outs = [(n + sum(pad) - (k - 1) * d - 1) // s + 1 for n, k, s, d, pad in zip(
            self.x[1:-1], self.filters, self.strides, self.dilations, self.pads)]
        return (self.x[0], *outs, self.filters[-1])


_NONE = ((0, 0), (0, 0))
#: Odd and even channels, steps beyond the filter, gaps in it, groups, one to three axes, more
#: channels than a tile has, and no images or features at all.
_CASES = (
    ConvolutionShape((2, 5, 6, 3), (3, 3, 3, 5), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ConvolutionShape((1, 9, 8, 8), (3, 2, 8, 12), (2, 2), (1, 1), ((1, 0), (0, 1))),
    ConvolutionShape((1, 7, 7, 4), (3, 3, 4, 8), (3, 1), (1, 2), ((2, 2), (2, 2))),
    ConvolutionShape((1, 8, 9, 4), (2, 3, 4, 4), (2, 4), (2, 3), ((1, 1), (3, 3))),
    ConvolutionShape((1, 6, 5, 4), (1, 1, 4, 8), (2, 3), (1, 1), _NONE),
    ConvolutionShape((2, 6, 6, 8), (3, 3, 4, 16), (1, 2), (1, 1), ((1, 1), (1, 1)), 2),
    ConvolutionShape((1, 4, 4, 6), (2, 2, 2, 9), (1, 1), (1, 1), _NONE, 3),
    ConvolutionShape((3, 40, 5), (4, 5, 3), (2,), (1,), ((2, 1),)),
    ConvolutionShape((1, 3, 4, 5, 2), (2, 2, 2, 2, 3), (1, 2, 1), (1, 1, 2),
                     ((1, 0), (0, 1), (1, 1))),
    ConvolutionShape((4, 9, 9, 68), (1, 1, 68, 72), (1, 1), (1, 1), _NONE),
    ConvolutionShape((3, 8, 8, 4), (3, 3, 4, 132), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ConvolutionShape((4, 8, 8, 68), (2, 2, 68, 8), (2, 2), (1, 1), _NONE),
    ConvolutionShape((1, 3, 3, 2), (3, 3, 2, 70), (1, 1), (1, 1), _NONE),
    ConvolutionShape((4, 12, 12, 3), (3, 2, 3, 6), (1, 1), (1, 1), ((1, 1), (1, 0))),
    ConvolutionShape((0, 4, 4, 2), (2, 2, 2, 2), (1, 1), (1, 1), _NONE),
    ConvolutionShape((2, 3, 3, 2), (2, 2, 2, 0), (1, 1), (1, 1), _NONE),
)


def checks() -> Iterator[Check]:
    for dtype in convolution.FLOATS:
        for multiprocessors, tiles in ((1, "large"), (64, "small")):
            for misaligned in (False, True):
                yield Check(f"convolution {dtype}, {tiles} tiles{', misaligned' * misaligned}",
                            partial(_convolution, dtype, multiprocessors, misaligned))


def _cells(case: ConvolutionShape) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each cell of the filter, and what it sees of the padded x."""
    for cell in product(*map(range, case.filters[:-2])):
        seen = [slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(
            cell, case.dilations, case.y[1:-1], case.strides)]
        yield cell, (slice(None), *seen)


def _reference(case: ConvolutionShape, x: np.ndarray, filters: np.ndarray,
               g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    padded = np.pad(x, ((0, 0), *case.pads, (0, 0)))
    y, dx, dw = np.zeros(case.y), np.zeros(padded.shape), np.zeros(case.filters)
    depth, width = case.filters[-2], case.filters[-1] // case.groups
    for (cell, seen), group in product(_cells(case), range(case.groups)):
        c = slice(group * depth, (group + 1) * depth)
        f = slice(group * width, (group + 1) * width)
        y[..., f] += padded[seen][..., c] @ filters[cell][:, f]
        dx[seen][..., c] += g[..., f] @ filters[cell][:, f].T
        seen_rows = padded[seen][..., c].reshape(-1, depth) if g.size else np.zeros((0, depth))
        dw[cell][:, f] += seen_rows.T @ g[..., f].reshape(len(seen_rows), width)
    inner = (slice(before, before + n) for (before, _), n in zip(case.pads, x.shape[1:-1]))
    return y, dx[(slice(None), *inner)], dw


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
    for case in _CASES:
        x, filters, g = (drawn(shape, seed, dtype=dtype) for seed, shape in enumerate(
            (case.x, case.filters, case.y)))
        wanted = _reference(case, x, filters, g)
        given = [bench.array(a, dtype, misaligned) for a in (x, filters, g)]
        how = (case.strides, case.dilations, case.pads, case.groups)
        with _as_with(bench.gpu, multiprocessors):
            results = (convolution.convolve(bench.gpu, given[0], given[1], *how),
                       convolution.input_gradient(bench.gpu, given[2], given[1], case.x, *how),
                       convolution.filter_gradient(bench.gpu, given[0], given[2], case.filters[:-2],
                                                   *how))
        for what, got, reference in zip(("", ", input", ", filter"), results, wanted):
            bench.same(f"convolution{what} {case}", got, reference, tolerance)

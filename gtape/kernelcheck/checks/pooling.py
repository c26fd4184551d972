"""Cases of max and average pooling and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gtape.devices.cuda.kernels import pooling
from gtape.kernelcheck.checks.bench import Bench, Check, drawn


class PoolingShape(NamedTuple):
    """The shape of x, and how windows lie over it."""

    shape: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def outs(self) -> tuple[int, ...]:
        return tuple((n + sum(pad) - (k - 1) * d - 1) // s + 1 for n, k, s, d, pad in zip(
            self.shape[1:-1], self.size, self.strides, self.dilations, self.pads))

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any]:
        return self.size, self.strides, self.dilations, self.pads

    def cells(self, out: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The input cells of window `out`, row-major, also those in the padding."""
        for cell in product(*map(range, self.size)):
            yield tuple(o * s + k * d - pad[0] for o, s, k, d, pad in zip(
                out, self.strides, cell, self.dilations, self.pads))

    def inside(self, cell: tuple[int, ...]) -> bool:
        return all(0 <= i < n for i, n in zip(cell, self.shape[1:-1]))


#: Windows that touch, overlap and leave gaps, one to three axes, padding, no images, no channels.
_CASES = (
    PoolingShape((2, 6, 6, 8), (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0))),
    PoolingShape((1, 7, 5, 3), (3, 3), (2, 2), (1, 1), ((1, 1), (0, 1))),
    PoolingShape((1, 6, 7, 16), (2, 3), (1, 2), (2, 1), ((1, 1), (1, 1))),
    PoolingShape((2, 9, 5), (3,), (2,), (2,), ((2, 1),)),
    PoolingShape((2, 5, 4), (2,), (3,), (1,), ((0, 0),)),
    PoolingShape((1, 4, 3, 5, 2), (2, 2, 3), (2, 1, 2), (1, 1, 1), ((0, 0), (1, 0), (1, 1))),
    PoolingShape((0, 4, 4, 3), (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0))),
    PoolingShape((3, 4, 0), (2,), (2,), (1,), ((0, 0),)),
    PoolingShape((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
)


def checks() -> Iterator[Check]:
    for dtype in pooling.ORDERED:
        for misaligned in (False, True):
            tail = f"{dtype}{' misaligned' * misaligned}"
            yield Check(f"max_pool {tail}", partial(_max_pool, dtype, misaligned))
            if dtype in pooling.FLOATS:
                yield Check(f"max_pool_grad {tail}", partial(_max_pool_grad, dtype, misaligned))
                yield Check(f"average_pool {tail}", partial(_average, dtype, misaligned))


def _drawn(window: PoolingShape, dtype: str) -> np.ndarray:
    """Few distinct values, so that windows hold ties."""
    values = np.round(drawn(window.shape, 7) * 3) / 2
    return np.round(values) if "int" in dtype else values


def _winners(window: PoolingShape, x: np.ndarray) -> Iterator[tuple[Any, Any, int]]:
    """(index into y, index into x, channel) of the first largest cell of every window."""
    for n, *out in product(*map(range, (window.shape[0], *window.outs))):
        cells = [c for c in window.cells(tuple(out)) if window.inside(c)]
        values = np.stack([x[(n, *c)] for c in cells])
        for channel in range(window.shape[-1]):
            line = values[:, channel]
            best = int(np.isnan(line).argmax()) if np.isnan(line).any() else int(line.argmax())
            yield (n, *out, channel), (n, *cells[best], channel), channel


def _pooled(window: PoolingShape, x: np.ndarray) -> np.ndarray:
    y = np.zeros((window.shape[0], *window.outs, window.shape[-1]))
    for at, place, _ in _winners(window, x):
        y[at] = x[place]
    return y


def _max_pool(dtype: str, misaligned: bool, bench: Bench) -> None:
    for window in _CASES:
        x = _drawn(window, dtype)
        if dtype in pooling.FLOATS and x.size > 4:
            x.reshape(-1)[[1, 4]] = np.nan, -np.inf
        got = pooling.max_pool(bench.gpu, bench.array(x, dtype, misaligned), *window.arguments)
        bench.same(f"max_pool {window}", got, _pooled(window, x))


def _max_pool_grad(dtype: str, misaligned: bool, bench: Bench) -> None:
    for window in _CASES:
        x = _drawn(window, dtype)
        if x.size > 4:
            x.reshape(-1)[1] = np.nan
        y = _pooled(window, x)
        a = drawn(y.shape, 8, dtype=dtype)
        b = drawn(x.shape, 9, dtype=dtype)
        total, picked, index = np.zeros(x.shape), np.zeros(y.shape), np.zeros(y.shape, np.int64)
        for at, place, _ in _winners(window, x):
            total[place] += a[at]
            picked[at] = b[place]
            index[at] = np.ravel_multi_index(place, x.shape)
        given, values, cotangent = (bench.array(v, dtype, misaligned) for v in (x, y, a))
        bench.same(f"max_pool_grad {window}", pooling.max_pool_grad(
            bench.gpu, cotangent, given, values, *window.arguments), total)
        bench.same(f"max_pool_pick {window}", pooling.max_pool_pick(
            bench.gpu, bench.array(b, dtype, misaligned), given, values, *window.arguments), picked)
        bench.same(f"max_pool_index {window}", pooling.max_pool_index(
            bench.gpu, given, values, *window.arguments, batch=True), index)
        image = max(1, x[:1].size)
        bench.same(f"max_pool_index {window} of images", pooling.max_pool_index(
            bench.gpu, given, values, *window.arguments, batch=False), index % image)


def _average(dtype: str, misaligned: bool, bench: Bench) -> None:
    for window in _CASES:
        x = drawn(window.shape, 10, dtype=dtype)
        y = np.zeros((window.shape[0], *window.outs, window.shape[-1]))
        a = drawn(y.shape, 11, dtype=dtype)
        total = np.zeros(x.shape)
        for n, *out in product(*map(range, y.shape[:-1])):
            cells = [c for c in window.cells(tuple(out)) if window.inside(c)]
            for c in cells:
                y[(n, *out)] += x[(n, *c)] / len(cells)
                total[(n, *c)] += a[(n, *out)] / len(cells)
        bench.same(f"average_pool {window}", pooling.average_pool(
            bench.gpu, bench.array(x, dtype, misaligned), *window.arguments), y)
        bench.same(f"average_pool_grad {window}", pooling.average_pool_grad(
            bench.gpu, bench.array(a, dtype, misaligned), window.shape, *window.arguments), total)

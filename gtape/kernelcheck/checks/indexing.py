"""Checks of gather, scatter, and the reductions of segments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels import indexing as kernels
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong, drawn

#: Elements of every size, since they are moved as bytes.
_DTYPES = ("float32", "float64", "float16", "bfloat16", "bool", "int8", "uint16", "int32", "int64",
           "complex64", "complex128")
#: Shapes of the table, the axis, and the shape of the indices.
_SHAPES = (((7, 33), 0, (5,)), ((7, 32), 0, (4, 3)), ((1000, 1), 0, (70,)), ((5,), 0, (31,)),
           ((3, 6, 8), 1, (5,)), ((2, 3, 9), 2, (2, 2)), ((4, 0), 0, (3,)), ((4, 3), 0, (0,)),
           ((2, 3000), 0, (3,)))


def checks() -> Iterator[Check]:
    for dtype in _DTYPES:
        for index in kernels.INDICES:
            for misaligned in (False, True):
                yield Check(f"gather {dtype} {index}{' misaligned' * misaligned}",
                            partial(_gather, dtype, index, misaligned))
    for index in kernels.INDICES:
        yield Check(f"gather_nd {index}", partial(_gather_nd, index))
    for dtype in kernels.DTYPES:
        for misaligned in (False, True):
            tail = " misaligned" * misaligned
            for index in kernels.INDICES:
                yield Check(f"scatter_add {dtype} {index}{tail}",
                            partial(_add, dtype, index, misaligned))
            for reduction in kernels.REDUCTIONS:
                yield Check(f"segment {reduction} {dtype}{tail}",
                            partial(_segments, dtype, reduction, misaligned))
    yield Check("segment of many chunks", _crowded)
    yield Check("scatter_nd", _nd)
    for dtype in ("bool", "float16", "float32", "complex64"):
        yield Check(f"scatter_update {dtype}", partial(_update, dtype))


def _gather(dtype: str, index: str, misaligned: bool, bench: Bench) -> None:
    for shape, axis, picked in _SHAPES:
        table = drawn(shape, 1, -100, 100)
        if dtype == "bool":
            table = table > 0
        rows = np.random.default_rng(2).integers(-1, shape[axis] + 1, picked)
        x = bench.array(table, dtype, misaligned)
        got = kernels.gather(bench.gpu, x, bench.array(rows, index, misaligned), axis)
        wanted = _taken(_host(bench, x), rows, axis)
        taken = _host(bench, got)
        if taken.shape != wanted.shape or not np.array_equal(taken, wanted):
            raise Wrong(f"gather {shape} along {axis} at {picked} ({dtype}): the rows are not "
                        f"those of the table")


def _gather_nd(index: str, bench: Bench) -> None:
    for shape, picked in (((3, 4, 5), (6, 2)), ((3, 4, 5), (2, 3, 3)), ((7, 2), (5, 1)),
                          ((3, 2), (4, 0)), ((3, 2), (0, 2)), ((2, 1, 3, 2, 2, 2, 3), (9, 6))):
        table = drawn(shape, 3)
        tuples = np.random.default_rng(4).integers(-1, 6, picked)
        tuples[:1] = 0
        sizes = np.array(shape[:picked[-1]])
        valid = ((tuples >= 0) & (tuples < sizes)).all(-1)
        clipped = np.clip(tuples, 0, sizes - 1)
        taken = np.broadcast_to(table[tuple(np.moveaxis(clipped, -1, 0))],
                                (*picked[:-1], *shape[picked[-1]:]))
        wanted = taken * valid.reshape(valid.shape + (1,) * (taken.ndim - valid.ndim))
        got = kernels.gather_nd(bench.gpu, bench.array(table, "float32"),
                                  bench.array(tuples, index))
        bench.same(f"gather_nd {shape} at {picked}", got, wanted)


def _host(bench: Bench, array: Any) -> np.ndarray:
    """Complex numbers too, which `Bench.host` does not take."""
    if array.dtype.kind != "c" or not array.size:
        return bench.host(array) if array.size else np.zeros(array.shape)
    parts = bench.host(array.reshape(-1).view(array.real.dtype)).reshape(*array.shape, 2)
    return parts[..., 0] + 1j * parts[..., 1]


def _taken(table: np.ndarray, rows: np.ndarray, axis: int) -> np.ndarray:
    valid = (rows >= 0) & (rows < table.shape[axis])
    taken = np.take(table, np.where(valid, rows, 0), axis)
    shape = (1,) * axis + valid.shape + (1,) * (table.ndim - axis - 1)
    return np.where(valid.reshape(shape), taken, np.zeros((), table.dtype))


#: The shape of x, the number of segments, and how many of the ids are one and the same.
_CASES = (((1, 1), 1, 0), ((31, 3), 4, 0), ((33, 8), 5, 20), ((200, 1), 7, 120), ((90, 16), 40, 70),
          ((257, 33), 3, 0), ((3, 1000), 2, 0), ((0, 4), 3, 0), ((5, 0), 3, 0), ((40, 2, 4), 9, 0))
_FOLD = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum}


def _drawn(case: tuple[tuple[int, ...], int, int], dtype: str,
           reduction: str = "sum") -> tuple[np.ndarray, np.ndarray]:
    """Rows and ids; some ids lie outside, and one may fill much of the array."""
    shape, rows, heavy = case
    low, high = (0.9, 1.1) if reduction == "product" else (-2.0, 2.0)
    if "int" in dtype:
        x = np.random.default_rng(3).integers(-5, 6, shape)
        x[x == 0] = 1
    else:
        x = drawn(shape, 3, low, high, dtype)
    ids = np.random.default_rng(4).integers(-1, rows + 1, shape[0])
    ids[:heavy] = rows - 1
    return x, np.random.default_rng(5).permutation(ids)


def _reference(x: np.ndarray, ids: np.ndarray, rows: int, reduction: str,
               empty: float) -> np.ndarray:
    table = np.full((rows, *x.shape[1:]), empty, x.dtype)
    for row in range(rows):
        if (ids == row).any():
            table[row] = _FOLD[reduction].reduce(x[ids == row], axis=0)
    return table


def _tolerance(dtype: str, count: int) -> float | None:
    """Sums of `count` terms round as often."""
    return {"float32": 1e-7 * count, "float64": 2e-16 * count}.get(dtype)


def _add(dtype: str, index: str, misaligned: bool, bench: Bench) -> None:
    for case in _CASES:
        x, ids = _drawn(case, dtype)
        for deterministic in (False, True):
            got = kernels.scatter_add(bench.gpu, bench.array(x, dtype, misaligned),
                                         bench.array(ids, index), case[1], deterministic)
            bench.same(f"scatter_add {case}, deterministic {deterministic}", got,
                       _reference(x, ids, case[1], "sum", 0), _tolerance(dtype, x.shape[0] + 9))


def _nd(bench: Bench) -> None:
    shape, tuples = (3, 4, 2), np.array([[0, 1], [2, 3], [0, 1], [3, 0], [-1, 2], [1, 4]])
    x = drawn((6, 2), 6)
    wanted = np.zeros(shape)
    for row, place in zip(x[:3], tuples):
        wanted[tuple(place)] += row
    for dtype in ("float32", "float64"):
        got = kernels.scatter_nd(bench.gpu, bench.array(tuples, "int32"),
                                    bench.array(x, dtype), shape)
        bench.same("scatter_nd", got, wanted)


def _update(dtype: str, bench: Bench) -> None:
    """Many tuples for few places, so that their runs cross chunks."""
    for shape, count in (((2, 3, 4), 50), ((40, 1, 3), 20), ((2, 1, 8), 1), ((3, 2, 0), 4)):
        old, new = (drawn(s, 7, 0, 9) > 4 for s in (shape, (count, shape[2])))
        rng = np.random.default_rng(8)
        tuples = np.stack([rng.integers(-1, n + 1, count) for n in shape[:2]], -1)
        wanted = old.copy()
        for place, row in zip(tuples, new):
            if ((place >= 0) & (place < shape[:2])).all():
                wanted[tuple(place)] = row
        got = kernels.scatter_update(bench.gpu, bench.array(old, dtype),
                                        bench.array(tuples, "int64"), bench.array(new, dtype))
        bench.same(f"scatter_update {shape}", got.real if dtype == "complex64" else got,
                   wanted if dtype == "bool" else wanted.astype(np.float64))


def _segments(dtype: str, reduction: str, misaligned: bool, bench: Bench) -> None:
    for case in _CASES:
        x, ids = _drawn(case, dtype, reduction)
        got = kernels.segment_reduce(bench.gpu, bench.array(x, dtype, misaligned),
                                        bench.array(ids, "int64"), case[1], reduction)
        empty = bench.host(kernels.empty_segments(bench.gpu, (1,), got.dtype, reduction))[0]
        wanted = _reference(x, ids, case[1], reduction, empty)
        if dtype == "int32":
            wanted = wanted.astype(np.int32)  # products wrap around
        bench.same(f"segment {reduction} {case}", got, wanted, _tolerance(dtype, x.shape[0] + 9))
    if "float" in dtype:
        _nan(dtype, reduction, bench)


def _crowded(bench: Bench) -> None:
    """Rounding errors of equal numbers all go one way, and would add up one by one."""
    x = np.full((1 << 16, 1), np.float32(1000.3), np.float32)
    got = kernels.segment_reduce(bench.gpu, bench.array(x, "float32"),
                                    bench.array(np.zeros(len(x)), "int64"), 1, "sum")
    bench.same("a run of 65536", got, x.sum(0, dtype=np.float64)[None], 3e-6)


def _nan(dtype: str, reduction: str, bench: Bench) -> None:
    x = np.array([1.0, np.nan, 2.0, np.inf, -np.inf])
    ids = np.array([0, 0, 1, 2, 2])
    got = kernels.segment_reduce(bench.gpu, bench.array(x, dtype), bench.array(ids, "int64"), 3,
                                    reduction)
    last = {"sum": np.nan, "product": -np.inf, "max": np.inf, "min": -np.inf}[reduction]
    bench.same(f"segment {reduction} of nan and inf", got, np.array([np.nan, 2.0, last]))

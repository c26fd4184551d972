"""Cases of gather."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.devices.cuda.kernels import gathering
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
        for index in gathering.INDICES:
            for misaligned in (False, True):
                yield Check(f"gather {dtype} {index}{' misaligned' * misaligned}",
                            partial(_gather, dtype, index, misaligned))
    for index in gathering.INDICES:
        yield Check(f"gather_nd {index}", partial(_gather_nd, index))


def _gather(dtype: str, index: str, misaligned: bool, bench: Bench) -> None:
    for shape, axis, picked in _SHAPES:
        table = drawn(shape, 1, -100, 100)
        if dtype == "bool":
            table = table > 0
        rows = np.random.default_rng(2).integers(-1, shape[axis] + 1, picked)
        x = bench.array(table, dtype, misaligned)
        got = gathering.gather(bench.gpu, x, bench.array(rows, index, misaligned), axis)
        wanted = _reference(_host(bench, x), rows, axis)
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
        got = gathering.gather_nd(bench.gpu, bench.array(table, "float32"),
                                  bench.array(tuples, index))
        bench.same(f"gather_nd {shape} at {picked}", got, wanted)


def _host(bench: Bench, array: Any) -> np.ndarray:
    """Complex numbers too, which `Bench.host` does not take."""
    if array.dtype.kind != "c" or not array.size:
        return bench.host(array) if array.size else np.zeros(array.shape)
    parts = bench.host(array.reshape(-1).view(array.real.dtype)).reshape(*array.shape, 2)
    return parts[..., 0] + 1j * parts[..., 1]


def _reference(table: np.ndarray, rows: np.ndarray, axis: int) -> np.ndarray:
    moved = np.moveaxis(table, axis, 0)
    values = np.zeros((rows.size, *moved.shape[1:]), table.dtype)
    for i, row in enumerate(rows.reshape(-1)):
        if 0 <= row < moved.shape[0]:
            values[i] = moved[row]
    back = np.moveaxis(values, 0, axis)
    return back.reshape(*table.shape[:axis], *rows.shape, *table.shape[axis + 1:])

"""Checks of the reductions of `kernels/reduce.cu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.kernels import reductions
from gtape.devices.cuda.kernels.reduction_geometry import Form, stage
from gtape.devices.cuda.kernels.reductions import SERVED, kernel_of
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong, drawn

#: Shapes and axes: lone elements, lanes of a row, edges off the vector width, columns, both.
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1,), (0,)), ((3,), (0,)), ((31,), (0,)), ((33,), (0,)), ((5, 7), (1,)), ((70, 4), (1,)),
    ((3, 260), (1,)), ((2, 1003), (1,)), ((6, 5), (0,)), ((33, 32), (0,)), ((40, 33), (0,)),
    ((2, 9, 16), (1,)), ((3, 4, 5), (0, 2)), ((2, 3, 1, 4), (1, 3)), ((4, 3), ()), ((), ()))
#: Axes so long that several blocks share them, where the device is not much larger than 4
#: multiprocessors.
LONG = (((33_003,), (0,)), ((2, 32_800), (1,)), ((2051, 3), (0,)), ((2051, 16), (0,)))
#: Relative to float32's: every factor of a product is one rounding.
_PRODUCT_TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def checks() -> Iterator[Check]:
    for operation, dtypes in SERVED.items():
        for dtype in dtypes:
            yield Check(f"{operation} {dtype}", _shapes(operation, dtype))
    for dtype in FLOATS:
        yield Check(f"mean {dtype}", _means(dtype))
    for dtype in FLOATS:
        yield Check(f"nan and inf {dtype}", _specials(dtype))
    yield Check("no elements", _empty)
    yield Check("ten million float32", _many)
    yield Check("transposed and strided", _layouts)
    yield Check("two-byte floats accumulate in float32", _narrow)
    yield Check("the same bits every time", _repeated)
    yield Check("blocks that loop", _looping)


def values(operation: str, dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Elements that `dtype` holds exactly, such that sums and products are not near 0."""
    if dtype in FLOATS:
        low, high = (0.99, 1.01) if operation == "Prod" else (-1.0, 2.0)
        return drawn(shape, seed, low, high, dtype)
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.random(shape) < (0.01 if operation == "Max" else 0.99)
    limits = np.iinfo(dtype)
    return draw.integers(limits.min, limits.max, shape, numpy_dtype(dtype), endpoint=True)


def reference(operation: str, dtype: str, x: np.ndarray, axes: tuple[int, ...]) -> Any:
    """The reduction by NumPy: of float64, or of integers that wrap around."""
    kept: dict[str, Any] = {"dtype": numpy_dtype(dtype)} if x.dtype.kind in "iu" else {}
    if operation == "Sum":
        return np.sum(x, axis=axes, **kept)
    if operation == "Prod":
        return np.prod(x | 1 if kept else x, axis=axes, **kept)
    return (np.max if operation == "Max" else np.min)(x, axis=axes)


def _shapes(operation: str, dtype: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for shape, axes in SHAPES + LONG:
            for misaligned in (False, True):
                x = values(operation, dtype, shape, len(shape))
                # Odd factors: a product of many even ones is 0 in every dtype.
                given = x | 1 if operation == "Prod" and x.dtype.kind in "iu" else x
                array = bench.array(given, dtype, misaligned).reshape(shape)
                _compare(bench, operation, dtype, array, x, axes)

    return run


def _compare(bench: Bench, operation: str, dtype: str, array: object, x: np.ndarray,
             axes: tuple[int, ...], keepdims: bool = False) -> None:
    got = reductions.reduce(bench.gpu, array, operation, axes, keepdims)
    wanted = reference(operation, dtype, x, axes)
    if keepdims:
        wanted = np.expand_dims(wanted, axes)
    if got.dtype.name != dtype:
        raise Wrong(f"{operation} of {dtype} gave {got.dtype.name}")
    tolerance = _PRODUCT_TOLERANCE.get(dtype) if operation == "Prod" else None
    bench.same(f"{operation} of {x.shape} over {axes}", got, wanted, tolerance)


def _means(dtype: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for shape, axes in ((5, 7), (1,)), ((9000,), (0,)), ((33, 32), (0,)), ((3, 4, 5), (0, 2)):
            x = values("Sum", dtype, shape)
            count = int(np.prod([shape[a] for a in axes]))
            wanted = reference("Sum", dtype, x, axes) / count
            got = reductions.mean(bench.gpu, bench.array(x, dtype), axes)
            bench.same(f"mean of {shape} over {axes}", got, wanted)

    return run


def _specials(dtype: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        rows = drawn((8, 300), 1, 0.5, 1.5, dtype)
        rows[0, 7] = rows[1, 299] = np.nan
        rows[2, 0], rows[3, 5], rows[4, (3, 9)] = np.inf, -np.inf, (np.inf, -np.inf)
        rows[5], rows[6] = -np.inf, np.inf
        for operation in ("Sum", "Max", "Min"):
            for x, axes in (rows, (1,)), (rows.T, (0,)):
                with np.errstate(invalid="ignore"):
                    array = bench.array(np.ascontiguousarray(x), dtype)
                    _compare(bench, operation, dtype, array, x, axes)

    return run


def _empty(bench: Bench) -> None:
    for dtype in ("float32", "int8", "bfloat16"):
        x = bench.array(np.zeros((3, 0)), dtype)
        top = np.inf if dtype != "int8" else 127
        low = -np.inf if dtype != "int8" else -128
        for operation, wanted in ("Sum", 0), ("Prod", 1), ("Max", low), ("Min", top):
            got = reductions.reduce(bench.gpu, x, operation, (1,))
            bench.same(operation, got, np.full(3, wanted))
            bench.same(operation, reductions.reduce(bench.gpu, x, operation, (0,)), np.zeros(0))
    nothing = bench.array(np.zeros((0, 2)), "float32")
    bench.same("mean", reductions.mean(bench.gpu, nothing, (0,)), np.full(2, np.nan))
    truths = bench.array(np.zeros((0, 2)), "bool")
    bench.same("any", reductions.reduce(bench.gpu, truths, "Max", (0,)), np.zeros(2, bool))
    bench.same("all", reductions.reduce(bench.gpu, truths, "Min", (0,)), np.ones(2, bool))


def _many(bench: Bench) -> None:
    x = np.random.default_rng(0).random(10_000_000, np.float32)
    got = reductions.reduce(bench.gpu, bench.array(x, "float32"), "Sum", (0,))
    bench.same("sum", got, np.sum(x, dtype=np.float64), 5e-7)


def _layouts(bench: Bench) -> None:
    x = values("Sum", "float32", (6, 7, 8))
    held = bench.array(x, "float32")
    for perm in (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1):
        for axes in (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2):
            array = bench.gpu.xp.transpose(held, perm)
            _compare(bench, "Sum", "float32", array, x.transpose(perm), axes, len(axes) == 2)
    for cut in (slice(None, None, 2), slice(1, 6)):
        _compare(bench, "Sum", "float32", held[:, cut], x[:, cut], (1,))


def _narrow(bench: Bench) -> None:
    """Ones added up one by one stop at 2048 in float16 and at 256 in bfloat16."""
    for dtype in ("float16", "bfloat16"):
        for shape, axis in ((1, 16_384), 1), ((16_384, 1), 0), ((4096, 8), 0):
            got = reductions.reduce(bench.gpu, bench.array(np.ones(shape), dtype), "Sum", (axis,))
            bench.same(f"{shape}", got, np.sum(np.ones(shape), axis=axis), 0.0)


def _repeated(bench: Bench) -> None:
    for shape, axis in ((40_000,), 0), ((2051, 5), 0):
        x = bench.array(drawn(shape, 3), "float32")
        first, again = (bench.host(reductions.reduce(bench.gpu, x, "Sum", (axis,)))
                        for _ in range(2))
        if first.tobytes() != again.tobytes():
            raise Wrong(f"two sums of the same {shape} differ: {first} and {again}")


def _looping(bench: Bench) -> None:
    """One block has all the rows, or all the tiles of columns, which a grid would share."""
    for form in Form(5, 3000, 1), Form(300, 40, 1), Form(2, 50, 700), Form(1, 200, 90):
        x = values("Sum", "float32", form)
        first = stage(form, 4, 4, False)
        out = bench.gpu.empty((first.results,), np.dtype(np.float32))
        bench.gpu.launch(kernel_of(first.template, "Sum", "float32", "float32"), (1, 1, 1),
                         first.block, (bench.array(x, "float32"), out, *first.sizes, 1))
        bench.same(f"{form}", out, x.sum(axis=1).reshape(-1))

"""Checks of reductions, positions of extremes and variances."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS, as_dtype
from gtape.devices.cuda.kernels import reductions
from gtape.devices.cuda.kernels.reduction_geometry import Form, stage
from gtape.devices.cuda.kernels.reductions import SERVED, arg_extreme, kernel_of, variance
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong, drawn, meant
from gtape.ops.reductions.moments import reduce_variance_

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
            yield Check(f"{operation} {dtype}", partial(_shapes, operation, dtype))
    for dtype in SERVED["Max"]:
        for largest in (True, False):
            yield Check(f"arg{'max' if largest else 'min'} {dtype}",
                        partial(_positions, dtype, largest))
    for dtype in FLOATS:
        yield Check(f"mean {dtype}", partial(_means, dtype))
        yield Check(f"variance {dtype}", partial(_variances, dtype))
        yield Check(f"nan and inf {dtype}", partial(_specials, dtype))
        yield Check(f"positions of nan and inf {dtype}", partial(_arg_specials, dtype))
    yield Check("no elements", _empty)
    yield Check("ten million float32", _many)
    yield Check("transposed and strided", _layouts)
    yield Check("two-byte floats accumulate in float32", _narrow)
    yield Check("the same bits every time", _repeated)
    yield Check("blocks that loop", _looping)
    yield Check("positions of ties", _ties)
    yield Check("positions in what is transposed", _arg_transposed)
    yield Check("variance far from zero", _far)
    yield Check("variance of nan, inf and no elements", _variance_specials)
    yield Check("variance of what is transposed", _variance_transposed)


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


def _shapes(operation: str, dtype: str, bench: Bench) -> None:
    for shape, axes in SHAPES + LONG:
        for misaligned in (False, True):
            x = values(operation, dtype, shape, len(shape))
            # Odd factors: a product of many even ones is 0 in every dtype.
            given = x | 1 if operation == "Prod" and x.dtype.kind in "iu" else x
            array = bench.array(given, dtype, misaligned).reshape(shape)
            _compare(bench, operation, dtype, array, x, axes)


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


def _means(dtype: str, bench: Bench) -> None:
    for shape, axes in ((5, 7), (1,)), ((9000,), (0,)), ((33, 32), (0,)), ((3, 4, 5), (0, 2)):
        x = values("Sum", dtype, shape)
        count = int(np.prod([shape[a] for a in axes]))
        wanted = reference("Sum", dtype, x, axes) / count
        got = reductions.mean(bench.gpu, bench.array(x, dtype), axes)
        bench.same(f"mean of {shape} over {axes}", got, wanted)


def _specials(dtype: str, bench: Bench) -> None:
    rows = drawn((8, 300), 1, 0.5, 1.5, dtype)
    rows[0, 7] = rows[1, 299] = np.nan
    rows[2, 0], rows[3, 5], rows[4, (3, 9)] = np.inf, -np.inf, (np.inf, -np.inf)
    rows[5], rows[6] = -np.inf, np.inf
    for operation in ("Sum", "Max", "Min"):
        for x, axes in (rows, (1,)), (rows.T, (0,)):
            with np.errstate(invalid="ignore"):
                array = bench.array(np.ascontiguousarray(x), dtype)
                _compare(bench, operation, dtype, array, x, axes)


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


#: Lone elements, lanes, edges off the vector width, columns; the last ones take several blocks.
_ARG_SHAPES = (((1,), 0), ((3,), 0), ((33,), 0), ((5, 7), 1), ((70, 4), 1), ((2, 1003), 1),
               ((6, 5), 0), ((33, 32), 0), ((40, 33), 0), ((2, 9, 16), 1), ((3, 4, 5), 0),
               ((2, 0), 0), ((9000,), 0), ((2, 16_400), 1), ((2051, 3), 0), ((2, 1100, 5), 1))


def _arg(bench: Bench, array: np.ndarray, x: np.ndarray, axis: int, largest: bool,
         dtype: str = "int64") -> None:
    got = arg_extreme(bench.gpu, array, axis, largest, as_dtype(dtype))
    wanted = (np.argmax if largest else np.argmin)(x, axis=axis)
    if got.dtype.name != dtype:
        raise Wrong(f"the positions are {got.dtype.name}, and {dtype} was asked for")
    bench.same(f"{x.shape} along {axis}", got, wanted)


def _positions(dtype: str, largest: bool, bench: Bench) -> None:
    for k, (shape, axis) in enumerate(_ARG_SHAPES):
        x = values("Max", dtype, shape, k)
        array = bench.array(x, dtype, misaligned=k % 2 == 1)
        _arg(bench, array, x, axis, largest, "int64" if k % 3 else "int32")
        if k % 5 == 0:
            _arg(bench, bench.array(x, dtype), x, axis, largest)


def _arg_specials(dtype: str, bench: Bench) -> None:
    """The first nan is the position of both extremes; infinities are elements like others."""
    x = values("Max", dtype, (6, 300))
    x[0, (7, 200)] = x[1, (299, 298)] = np.nan
    x[2], x[3] = np.inf, -np.inf
    x[4, (3, 9)], x[5] = (np.inf, -np.inf), np.nan
    for largest in (True, False):
        _arg(bench, bench.array(x, dtype), x, 1, largest)
        _arg(bench, bench.array(np.ascontiguousarray(x.T), dtype), x.T, 0, largest)


def _ties(bench: Bench) -> None:
    for shape, axis in ((9000,), 0), ((2051, 3), 0), ((3, 500), 1):
        x = np.random.default_rng(1).integers(0, 3, shape)
        for dtype in ("float32", "int8", "bool"):
            for largest in (True, False):
                _arg(bench, bench.array(x, dtype), x.astype(dtype), axis, largest)


def _arg_transposed(bench: Bench) -> None:
    x = values("Max", "float32", (20, 30))
    array = bench.gpu.xp.transpose(bench.array(x, "float32"))
    for axis in (0, 1):
        _arg(bench, array, x.T, axis, True, "int32")


def _variances(dtype: str, bench: Bench) -> None:
    for shape, axes in SHAPES + LONG:
        x = drawn(shape, len(shape), dtype=dtype)
        for misaligned in (False, True):
            array = bench.array(x, dtype, misaligned).reshape(shape)
            got = variance(bench.gpu, array, axes, keepdims=misaligned)
            wanted = meant(reduce_variance_, x, axis=axes, keepdims=misaligned)
            bench.same(f"{shape} over {axes}", got, wanted)


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


def _variance_specials(bench: Bench) -> None:
    x = drawn((3, 200), 2)
    x[0, 3], x[1, 199] = np.nan, np.inf
    for given, axis in (x, 1), (np.ascontiguousarray(x.T), 0):
        got = variance(bench.gpu, bench.array(given, "float32"), (axis,))
        bench.same("nan and inf", got, _variance(given, axis))
    nothing = bench.array(np.zeros((0, 2)), "float32")
    bench.same("no elements", variance(bench.gpu, nothing, (0,)), np.full(2, np.nan))


def _variance_transposed(bench: Bench) -> None:
    x = drawn((20, 30), 4)
    got = variance(bench.gpu, bench.gpu.xp.transpose(bench.array(x, "float32")), (0,))
    bench.same("transposed", got, _variance(x.T, 0))

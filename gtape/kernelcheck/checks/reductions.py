"""Checks of reductions, positions of extremes and variances; and of the templates of
`kernels/reduce.cuh` as printed kernels use them: with a Load that computes from several inputs, one
of them broadcast, and an epilogue that reads another array.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS, as_dtype
from gtape.devices.cuda.kernels import reductions
from gtape.devices.cuda.kernels.reduction_geometry import Form, Stage, plan, stage
from gtape.devices.cuda.kernels.reductions import SERVED, arg_extreme, kernel_of, variance
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
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
    yield Check("rows with prologue and epilogue", lambda bench: _fused(bench, _ROWS))
    yield Check("columns with prologue and epilogue", lambda bench: _fused(bench, _COLUMNS))
    yield Check("rows in parts with prologue and epilogue", _in_parts)
    yield Check("quotients of 32 and 64 bits", _quotients)


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


_TEXT = """
#include "reduce.cuh"

// relu(x[i] * scale[i % n]) for x of half.
struct Load {
    const half* x;
    const float* scale;
    long long n;
    DEVICE float of(long long i, float x) const {
        float y = x * scale[i % n];
        return y > 0 ? y : 0;
    }
    DEVICE float operator()(long long i) const { return of(i, x[i]); }
    DEVICE void vector(long long i, float (&v)[8]) const {
        Vec<half, 8> wide = *reinterpret_cast<const Vec<half, 8>*>(x + i);
        for (int k = 0; k < 8; k++) v[k] = of(i + k, wide.v[k]);
    }
    DEVICE bool can_vector() const { return aligned16(x); }
};

// The mean, plus an element of its own for each result.
struct Epilogue {
    const float* shift;
    long long count;
    DEVICE half operator()(long long i, float total) const {
        return half(total / (float)count + shift[i]);
    }
};

__global__ void __launch_bounds__(REDUCE_THREADS)
rows(const half* x, const float* scale, const float* shift, half* y, long long outer,
     long long reduced, long long lanes, long long part_length) {
    reduce_rows<Sum, float, 8>(Load{x, scale, reduced}, Output<half, Epilogue>{y, {shift, reduced}},
                               outer, reduced, (int)lanes, part_length);
}

__global__ void __launch_bounds__(REDUCE_THREADS)
columns(const half* x, const float* scale, const float* shift, half* y, long long outer,
        long long reduced, long long inner, long long lanes, long long part_length) {
    reduce_columns<Sum, float, 8>(Load{x, scale, inner},
                                  Output<half, Epilogue>{y, {shift, reduced}}, outer, reduced,
                                  inner, (int)lanes, part_length);
}

__global__ void __launch_bounds__(REDUCE_THREADS)
rows_partial(const half* x, const float* scale, const float* shift, float* y, long long outer,
             long long reduced, long long lanes, long long part_length) {
    reduce_rows<Sum, float, 8>(Load{x, scale, reduced}, Output<float, Partial>{y, {}}, outer,
                               reduced, (int)lanes, part_length);
}

__global__ void __launch_bounds__(REDUCE_THREADS)
rows_finish(const float* x, const float* shift, half* y, long long outer, long long parts,
            long long lanes, long long part_length, long long reduced) {
    reduce_rows<Sum, float, 4>(Contiguous<float, float, 4>{x},
                               Output<half, Epilogue>{y, {shift, reduced}}, outer, parts,
                               (int)lanes, part_length);
}

__global__ void quotients(const long long* a, const long long* b, long long* y, long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) y[i] = quotient(a[i], b[i]);
}
"""


_ROWS = ((3, 40, 1), (5, 777, 1), (40, 7, 1), (1, 2000, 1))
_COLUMNS = ((1, 40, 16), (2, 70, 24), (3, 9, 5), (1, 300, 9))


def _kernel(entry: str) -> Kernel:
    return Kernel(expand(_TEXT, "reduction_templates.cu"), entry)


def _arrays(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, scale and shift, and the reference."""
    outer, reduced, inner = shape
    x, shift = drawn(shape, 1, dtype="float16"), drawn(outer * inner, 3)
    scale = drawn(reduced if inner == 1 else inner, 2)
    along = scale[:, None] if inner == 1 else scale
    wanted = np.maximum(x * along, 0).mean(axis=1).reshape(-1) + shift
    return x, scale, shift, wanted


def _fused(bench: Bench, shapes: tuple[tuple[int, int, int], ...]) -> None:
    for shape in shapes:
        x, scale, shift, wanted = _arrays(shape)
        stage = plan(*shape, 2, bench.gpu).first
        assert stage.parts == 1
        for misaligned in (False, True):
            out = bench.gpu.empty((stage.results,), np.dtype(np.float16))
            given = (bench.array(x, "float16", misaligned), bench.array(scale, "float32"),
                     bench.array(shift, "float32"), out)
            _launch(bench, stage.template, stage, given)
            bench.same(f"{shape}", out, wanted)


def _in_parts(bench: Bench) -> None:
    shape = (1, 70_003, 1)
    x, scale, shift, wanted = _arrays(shape)
    first, second = plan(*shape, 2, bench.gpu)
    if second is None:
        return
    held = bench.array(shift, "float32")
    partial = bench.gpu.empty((first.results,), np.dtype(np.float32))
    out = bench.gpu.empty((second.results,), np.dtype(np.float16))
    given = (bench.array(x, "float16"), bench.array(scale, "float32"), held, partial)
    _launch(bench, "rows_partial", first, given)
    _launch(bench, "rows_finish", second, (partial, held, out), (shape[1],))
    bench.same(f"{shape}", out, wanted)


def _launch(bench: Bench, entry: str, stage: Stage, arrays: tuple[object, ...],
            more: tuple[int, ...] = ()) -> None:
    bench.gpu.launch(_kernel(entry), stage.grid, stage.block, (*arrays, *stage.sizes, *more))


def _quotients(bench: Bench) -> None:
    draw = np.random.default_rng(0)
    a = draw.integers(0, 1 << 62, 2000) >> draw.integers(0, 62, 2000)
    b = (draw.integers(0, 1 << 62, 2000) >> draw.integers(0, 62, 2000)) + 1
    a[:500] = a[:500] // b[:500] * b[:500]
    a[500:600] = np.maximum(a[500:600] // b[500:600] * b[500:600] - 1, 0)
    out = bench.gpu.empty((2000,), np.dtype(np.int64))
    bench.gpu.launch(_kernel("quotients"), (2, 1, 1), (256, 1, 1),
                     (bench.array(a, "int64"), bench.array(b, "int64"), out, 2000))
    bench.same("quotients", out, a // b)

"""Checks of the templates of `kernels/reduce.cuh` as printed kernels use them: with a Load that
computes from several inputs, one of them broadcast, and an epilogue that reads another array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gtape.devices.cuda.kernels.reduction_geometry import Stage, plan
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.checks.bench import Bench, Check, drawn

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


def checks() -> Iterator[Check]:
    yield Check("rows with prologue and epilogue", lambda bench: _fused(bench, _ROWS))
    yield Check("columns with prologue and epilogue", lambda bench: _fused(bench, _COLUMNS))
    yield Check("rows in parts with prologue and epilogue", _in_parts)
    yield Check("quotients of 32 and 64 bits", _quotients)


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

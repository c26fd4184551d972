"""Half and bfloat16 of kernels: conversions of every bit pattern, and rounding of floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gtape.devices.cuda.kernel import Kernel
from gtape.devices.cuda.source import expand
from gtape.devices.emulator.executor import EmulatedExecutor, emulated_executor

TEXT = expand(r"""
#include "gtape.cuh"
template <typename T> __global__ void widen(const T* x, float* y, long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) y[i] = float(x[i]);
}
template <typename T> __global__ void narrow(const float* x, T* y, long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) y[i] = T(x[i]);
}
""", "half.cu")
DTYPES = {"half": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


@pytest.fixture
def gpu(emulator: None) -> EmulatedExecutor:
    """One schedule is enough: the threads have nothing to do with each other."""
    return emulated_executor()


def narrowed(gpu: EmulatedExecutor, name: str, values: np.ndarray) -> np.ndarray:
    x, y = gpu.empty(values.shape, np.float32), gpu.empty(values.shape, DTYPES[name])
    x[...] = values
    gpu.launch(Kernel(TEXT, f"narrow<{name}>"), (4, 1, 1), (256, 1, 1), (x, y, x.size))
    return y


@pytest.mark.parametrize("name", DTYPES)
def test_every_bit_pattern_as_a_float(gpu: EmulatedExecutor, name: str) -> None:
    x, y = gpu.empty(65536, DTYPES[name]), gpu.empty(65536, np.float32)
    x.view(np.uint16)[...] = np.arange(65536)
    gpu.launch(Kernel(TEXT, f"widen<{name}>"), (4, 1, 1), (256, 1, 1), (x, y, 65536))
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = x.astype(np.float32)
    np.testing.assert_array_equal(y, wanted)
    numbers = ~np.isnan(wanted)
    assert (np.signbit(y) == np.signbit(wanted))[numbers].all()
    back = narrowed(gpu, name, y)
    assert (back.view(np.uint16) == x.view(np.uint16))[numbers].all()
    assert np.isnan(back.astype(np.float32)[~numbers]).all()


@pytest.mark.parametrize("name", DTYPES)
def test_rounding_to_nearest_even(gpu: EmulatedExecutor, name: str) -> None:
    every = np.arange(65536, dtype=np.uint16).view(DTYPES[name])
    with np.errstate(invalid="ignore", over="ignore"):
        every = np.sort(every[np.isfinite(every)].astype(np.float64))
        halfway = ((every[1:] + every[:-1]) / 2).astype(np.float32)
        values = np.concatenate([
            halfway, np.nextafter(halfway, np.float32(np.inf)),
            np.nextafter(halfway, np.float32(-np.inf)),
            np.random.default_rng(0).integers(0, 2**32, 200_000, np.uint32).view(np.float32),
            np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 65504, 65519.996, 65520,
                      3.4028235e38, 3.39e38, 2**-14, 2**-24, 2**-25, 2**-133, 2**-134],
                     np.float32)])
        got, wanted = narrowed(gpu, name, values), values.astype(DTYPES[name])
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(got.view(np.uint16)[numbers], wanted.view(np.uint16)[numbers])
    assert np.isnan(got.astype(np.float32)[~numbers]).all()

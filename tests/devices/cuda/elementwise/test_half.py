"""Half and bfloat16 of kernels: conversions of every bit pattern, and rounding of floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gtape.devices.cuda.elementwise.maps import DeviceMaps
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.emulator.executor import EmulatedExecutor, emulated_executor
from gtape.opdef.scalar_graph import Expr, ScalarGraph
from gtape.ops.elementwise import scalars

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


# ---------------------------------------------------------------- formulas

def mapped(gpu: EmulatedExecutor, outputs: list[Expr], dtype: np.dtype,
           **given: np.ndarray) -> tuple[np.ndarray, ...]:
    """The outputs of one launch."""
    arrays = []
    for value in given.values():
        arrays.append(gpu.empty(value.shape, value.dtype))
        arrays[-1][...] = value
    made = DeviceMaps(gpu).make("formula", outputs, list(given), [a.dtype for a in arrays],
                                [dtype] * len(outputs))
    assert made is not None
    return tuple(np.array(a) for a in made(*arrays))


@pytest.mark.parametrize("name", DTYPES)
def test_a_formula_is_rounded_where_something_looks_into_it(gpu: EmulatedExecutor,
                                                            name: str) -> None:
    """A product that is compared, and one that is written out and read on."""
    dtype, scope = DTYPES[name], ScalarGraph()
    x, y = scope.input("x"), scope.input("y")
    third = np.full(400, 1 / 3, dtype)
    whole = np.arange(400).astype(dtype)
    product: Expr = x * y
    equal = scope.node(scalars.equal.op, (product, scope.node(scalars.floor.op, (product,))))
    outputs = [scope.node(scalars.where.op, (equal, 1.0, 0.0)), product, product - x]
    at, made, rest = mapped(gpu, outputs, dtype, x=whole, y=third)
    wanted = (whole.astype(np.float32) * third.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_array_equal(rest, (wanted.astype(np.float32) - whole).astype(dtype))
    np.testing.assert_array_equal(at.astype(bool), wanted == np.floor(wanted))


@pytest.mark.parametrize("name", DTYPES)
def test_sums_take_rounded_numbers(gpu: EmulatedExecutor, name: str) -> None:
    """The gradient of what was broadcast is made on the way into its sum."""
    dtype, scope = DTYPES[name], ScalarGraph()
    x = (np.arange(5 * 64).reshape(5, 64) % 37).astype(dtype)
    third = np.full((5, 64), 1 / 3, dtype)
    maps = DeviceMaps(gpu)
    whole = maps.make("multiply", [scope.input("a") * scope.input("b")], ["a", "b"], [dtype] * 2,
                      [dtype])
    arrays = [gpu.empty((5, 64), dtype) for _ in range(2)]
    arrays[0][...], arrays[1][...] = x, third
    product = (x.astype(np.float32) * third.astype(np.float32)).astype(dtype).astype(np.float64)
    for target in ((64,), (5, 1)):
        got = np.array(maps.summed(whole)(target, *arrays))
        wanted = product.sum(0) if target == (64,) else product.sum(1, keepdims=True)
        np.testing.assert_array_equal(got, wanted.astype(np.float32).astype(dtype))


def test_doubles_become_halves_in_one_rounding(gpu: EmulatedExecutor) -> None:
    near = 1 + 2.0 ** -11 + np.array([2.0 ** -40, -(2.0 ** -40), 0.0])
    x = np.concatenate([near, -near, near * 2.0 ** -16, [65519.9999999, 65520, 1e300, 1e-300]])
    (got,) = mapped(gpu, [-ScalarGraph().input("x")], DTYPES["half"], x=x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, -x.astype(np.float16))

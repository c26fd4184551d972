"""CUDA's mathematical functions in the emulator, against SciPy."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from gtape.core.errors import UnavailableError
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand, read_shipped
from gtape.kernelcheck.emulator.build import library
from gtape.kernelcheck.emulator.executor import EmulatedExecutor, emulated_executor

special = pytest.importorskip("scipy.special")
FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], float, float]] = {
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 1e6), "rcbrt": (lambda x: 1 / np.cbrt(x), 1e-3, 1e6),
    "sinpi": (lambda x: special.sindg(180 * x), -9, 9),
    "cospi": (lambda x: special.cosdg(180 * x), -9, 9), "normcdf": (special.ndtr, -30, 8),
    "normcdfinv": (special.ndtri, 0, 1), "erfinv": (special.erfinv, -1, 1),
    "cyl_bessel_i0": (special.i0, -80, 80), "cyl_bessel_i1": (special.i1, -80, 80)}
TEXT = expand("\n".join(f"""
__global__ void {name}_kernel(const double* x, double* y, float* z, long long n) {{
    for (long long i = threadIdx.x; i < n; i += blockDim.x) {{
        y[i] = {name}(x[i]);
        z[i] = {name}{"" if name == "rsqrt" else "f"}((float)x[i]);
    }}
}}""" for name in FUNCTIONS) + r"""
__global__ void integers(unsigned long long* y, const unsigned long long* x, long long n) {
    for (long long i = 0; i < n; ++i) {
        unsigned a = (unsigned)x[2 * i], b = (unsigned)x[2 * i + 1];
        unsigned long long* row = y + 8 * i;
        row[0] = __umulhi(a, b);
        row[1] = __umul64hi(x[2 * i], x[2 * i + 1]);
        row[2] = __popc(a) + __popcll(x[2 * i]);
        row[3] = __clz((int)a) + __clzll((long long)x[2 * i]);
        row[4] = __ffs((int)a) + __ffsll((long long)x[2 * i]);
        row[5] = __brev(a);
        row[6] = __funnelshift_l(a, b, 7) ^ __funnelshift_r(a, b, 7);
        row[7] = (unsigned)__float2int_rn(__uint_as_float(a));
    }
}""", "math.cu")


@pytest.fixture
def gpu(emulator: None) -> EmulatedExecutor:
    """One schedule is enough: the threads have nothing to do with each other."""
    return emulated_executor()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(gpu: EmulatedExecutor, name: str) -> None:
    function, low, high = FUNCTIONS[name]
    x = gpu.empty(2001, np.float64)
    x[...] = np.concatenate([np.linspace(low, high, 1000), [0.5 * (low + high)],
                             np.random.default_rng(0).uniform(low, high, 1000)])
    y, z = gpu.empty(2001, np.float64), gpu.empty(2001, np.float32)
    gpu.launch(Kernel(TEXT, f"{name}_kernel"), (1, 1, 1), (32, 1, 1), (x, y, z, x.size))
    with np.errstate(all="ignore"):
        wanted, narrow = function(x), function(x.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(y, wanted, rtol=1e-13, atol=5e-15)
    np.testing.assert_allclose(z, narrow.astype(np.float32), rtol=3e-7, atol=1e-15)


def _calls() -> list[str]:
    """A call of each function of <math.h> that the emulator declares, for a number x and an int n.
    """
    header = read_shipped("emulator_math.h")
    lines = [line for line in header.splitlines() if line.startswith("GTAPE_")]
    found = re.findall(r"GTAPE_(UNARY|BINARY|INTEGER|SCALED)\(([^)]+)\)", "\n".join(lines))
    by_kind: dict[str, Callable[..., str]] = {
        "UNARY": lambda name: f"{name}(x)", "BINARY": lambda name: f"{name}(x, x)",
        "INTEGER": lambda result, name: f"{name}(x)",
        "SCALED": lambda name, by: f"{name}(x, {'&n' if by == 'int*' else 'n'})"}
    return [by_kind[kind](*of.split(", ")) for kind, of in found]


def test_nvrtc_has_the_functions_of_the_c_library_too(emulator: None) -> None:
    calls = _calls()
    assert len(calls) > 50
    text = "".join(f"__global__ void f_{kind}({kind}* y, {kind} x, int n) {{\n"
                   + "".join(f"    y[{i}] = {call};\n" for i, call in enumerate(calls)) + "}\n"
                   for kind in ("float", "double"))
    library(text, ("f_float", "f_double"))
    try:
        nvrtc.find().compile(text, ["f_float", "f_double"], "sm_90")
    except UnavailableError as error:
        pytest.skip(str(error))


def test_integer_functions(gpu: EmulatedExecutor) -> None:
    x, y = gpu.empty((200, 2), np.uint64), gpu.empty((200, 8), np.uint64)
    x[...] = np.random.default_rng(0).integers(0, 2**64, x.shape, np.uint64)
    x[0] = 0
    x[1] = 1 << 31, (1 << 64) - 1
    gpu.launch(Kernel(TEXT, "integers"), (1, 1, 1), (1, 1, 1), (y, x, 200))
    low = 0xffffffff
    for (p, q), row in zip(x.tolist(), y.tolist()):
        a, b = p & low, q & low
        first = [(n & -n).bit_length() for n in (a, p)]
        both = b << 32 | a
        number = float(np.array(a, np.uint32).view(np.float32))
        rounded = 0 if number != number else min(max(number, -2.0**31), 2.0**31 - 1)
        assert row == [
            a * b >> 32, p * q >> 64, a.bit_count() + p.bit_count(),
            32 - a.bit_length() + 64 - p.bit_length(), sum(first), int(f"{a:032b}"[::-1], 2),
            (both << 7 >> 32 & low) ^ (both >> 7 & low), round(rounded) & low]

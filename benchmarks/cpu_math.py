"""The scalar functions of generated CPU code: nanoseconds per element beside libm and NumPy.

Run `python -m benchmarks.cpu_math` or `python benchmarks/cpu_math.py`. One thread; beside PyTorch
too where it is installed.
"""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.devices.cpu import toolchain

ELEMENTS, ROUNDS = 1 << 16, 60
#: Each function's name in NumPy and PyTorch, "" where there is none.
NAMES = {"exp": "exp", "expm1": "expm1", "tanh": "tanh", "log": "log", "log1p": "log1p",
         "sqrt": "sqrt", "rsqrt": "", "sin": "sin", "cos": "cos", "tan": "tan", "erf": "",
         "erfc": "", "normcdf": "", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
         "sinh": "sinh", "cosh": "cosh", "asinh": "arcsinh", "acosh": "arccosh",
         "atanh": "arctanh", "pow": "power"}
#: What libm has no function for, in terms of those it has.
IN_LIBM = {"rsqrt": "1 / __builtin_sqrt{f}(a)",
           "normcdf": "{T}(0.5) * __builtin_erfc{f}(a * {T}(-0.70710678118654752440))",
           "pow": "__builtin_pow{f}(a, a)"}


def _loop(name: str, kind: str, body: str) -> str:
    return (f'extern "C" __attribute__((visibility("default"))) void {name}_{kind}('
            f"const {kind}* __restrict x, {kind}* __restrict y, long n) {{\n#pragma omp simd\n"
            f"for (long i = 0; i < n; ++i) {{ const {kind} a = x[i]; y[i] = {body}; }} }}\n")


def program() -> str:
    """A loop over each function, and over libm's."""
    loops = []
    for kind, suffix in (("float", "f"), ("double", "")):
        for name in NAMES:
            loops.append(_loop(name, kind, f"{name}(a{', a' if name == 'pow' else ''})"))
            libm = IN_LIBM.get(name, "__builtin_" + name + "{f}(a)")
            loops.append(_loop(f"libm_{name}", kind, libm.format(f=suffix, T=kind)))
    return '#include "cpu_math.h"\nnamespace gtape_cpu {\n' + "".join(loops) + "}\n"


def _native(library: ctypes.CDLL, name: str, x: Any) -> Callable[[], Any]:
    kind = "float" if x.dtype == np.float32 else "double"
    out, function = np.empty_like(x), getattr(library, f"{name}_{kind}")
    kept = (x, out)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in kept]
    return lambda: (function(*pointers, ctypes.c_long(x.size)), kept)


def _numpy(name: str, x: Any) -> Callable[[], Any] | None:
    if not NAMES[name]:
        return None
    out, function = np.empty_like(x), getattr(np, NAMES[name])
    return lambda: function(*(x, x) if name == "pow" else (x,), out=out)


def _torch(name: str, x: Any) -> Callable[[], Any] | None:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(1)
    function = torch.special.ndtr if name == "normcdf" else getattr(torch, name)
    given, out = torch.from_numpy(x), torch.empty(x.shape, dtype=torch.from_numpy(x).dtype)
    return lambda: function(*(given, given) if name == "pow" else (given,), out=out)


def arguments(name: str, dtype: Any) -> Any:
    """Normal numbers, moved to where the function is defined."""
    x = np.random.default_rng(0).standard_normal(ELEMENTS)
    if name in ("log", "log1p", "sqrt", "rsqrt", "pow"):
        x = abs(x) + 1e-3
    elif name in ("asin", "acos", "atanh"):
        x = np.tanh(x)
    elif name == "acosh":
        x = abs(x) + 1
    return x.astype(dtype)


def best(programs: list[Callable[[], Any] | None]) -> list[float | None]:
    """Nanoseconds per element of each, the best of interleaved rounds."""
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for run, found in zip(programs, times):
            if run is not None:
                start = time.perf_counter()
                run()
                found.append(time.perf_counter() - start)
    return [min(found) / ELEMENTS * 1e9 if found else None for found in times]


def main() -> None:
    library = toolchain.library(program())
    for dtype in ("float32", "float64"):
        print(f"\n{dtype}, ns per element\n{'':10}{'gtape':>9}{'libm':>9}{'numpy':>9}{'torch':>9}")
        for name in NAMES:
            x = arguments(name, dtype)
            found = best([_native(library, name, x), _native(library, f"libm_{name}", x),
                          _numpy(name, x), _torch(name, x)])
            print(f"{name:10}" + "".join(f"{'-' if t is None else format(t, '.3f'):>9}"
                                         for t in found))


if __name__ == "__main__":
    main()

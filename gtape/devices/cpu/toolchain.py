"""C++ programs compiled for this CPU and loaded: the compiler's options, the library of threads and
GEMM that all programs use, and why none can be compiled.
"""

from __future__ import annotations

import ctypes
import operator
import os
import platform
import re
import sys
import warnings
from functools import cache
from pathlib import Path

from gtape.core.context import stack_level
from gtape.core.errors import (
    InvalidArgumentError,
    KernelError,
    MissingError,
    NativeCodeWarning,
    PassingError,
)
from gtape.devices.compiler import Library, Recipe, compiler, function, load, output
from gtape.devices.cpu.cores import MOST, wanted
from gtape.devices.kernel_source import expand, expand_file

#: Rounding stays what the program says: no reordered sums, no contraction, NaN and infinity kept.
#: Only errno and floating-point traps are given up, which nobody reads here and which would keep
#: loops from being vectorised.
_STRICT = ("-std=c++17", "-O3", "-fPIC", "-w", "-fwrapv", "-fno-math-errno", "-fno-trapping-math",
           "-ffp-contract=off", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
           "-fvisibility=hidden")
_IDENTITY = re.compile(r"^(model name|flags|CPU implementer|CPU part|Features)\s*:.*$",
                       re.MULTILINE)


def switched_off() -> bool:
    """Whether the user forbids native code: GTAPE_NATIVE=0 in the environment."""
    return os.environ.get("GTAPE_NATIVE", "1").strip().lower() in ("0", "false", "off", "no")


def recipe(*more: str) -> Recipe:
    """How to compile a program, with `more` options that replace those before them. Raises
    MissingError: native code is switched off, or there is no C++ compiler; KernelError: the
    compiler does not answer.

    Where a product and its addition may be one operation, they are one everywhere: for some CPUs
    GCC spares short chains of them, and an element's last digits would depend on its tile.
    """
    if switched_off():
        raise MissingError("native code is switched off by GTAPE_NATIVE=0 in the environment")
    if sys.platform == "win32":
        raise MissingError("native code is compiled on Linux and macOS; this is Windows")
    chains = ("--param=avoid-fma-max-bits=0",) if "-ffp-contract=fast" in more else ()
    return Recipe(compiler("native code"), _STRICT + more, (*_optional(), *chains), _libraries(),
                  _machine())


# -march=native is in the key by `_machine`: a cache folder shared between machines must not give
# one of them what the other's CPU alone can run.
@cache
def _optional() -> tuple[str, ...]:
    """Options for this CPU. Compilers prefer 32-byte vectors for fear of lower clocks; on the
    CPUs with AVX-512 that are common now, 64-byte ones are faster."""
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    wide = ("-mprefer-vector-width=512",) if "avx512f" in _machine() else ()
    return (native, "-fopenmp-simd", *wide)


@cache
def _machine() -> str:
    """Model and instruction sets of the CPU, which the compiler reads too."""
    if sys.platform == "darwin":
        return output("sysctl", "-n", "machdep.cpu.brand_string")
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n", 1)[0]
    except OSError:
        return platform.processor()
    return "\n".join(line[0] for line in _IDENTITY.finditer(text))


@cache
def _libraries() -> tuple[str, ...]:
    if sys.platform == "darwin":
        # macOS refuses undefined symbols in a library; those of the runtime are there when it is
        # loaded.
        return ("-undefined", "dynamic_lookup")
    return ("-lpthread", "-lm")


class _Threads:
    """The count that was set; 0 is the default."""

    count = 0


@cache
def runtime() -> ctypes.CDLL:
    """The loaded library; its symbols are there for programs loaded later. Raises KernelError:
    native code is switched off, or there is no C++ compiler that works."""
    # -O2 compiles in half the time of -O3; vectors are written out, so nothing is lost.
    library = load("cpu", expand_file("cpu_runtime.cpp"), recipe("-O2", "-ffp-contract=fast"),
                   name="cpu_runtime", mode=ctypes.RTLD_GLOBAL)
    function(library, "gtape_set_threads")(threads())
    return library


def threads() -> int:
    """The threads of a parallel loop: those set, else GTAPE_NUM_THREADS, else OMP_NUM_THREADS, else
    the cores that the process may use."""
    return _Threads.count or wanted()


def set_threads(count: int) -> None:
    """Use `count` threads for parallel loops, 1024 at most; 0 stands for the default. Raises
    InvalidArgumentError: the count is negative.

    The matrix products of this library give the same results with any number of threads.
    """
    count = operator.index(count)
    if count < 0:
        raise InvalidArgumentError(f"the number of threads must be 0 (the default) or more; "
                                   f"it was {count}")
    _Threads.count = min(count, MOST)
    # Before the library is built the count is only noted: setting it must not start a compiler.
    if runtime.cache_info().currsize:
        runtime().gtape_set_threads(threads())


#: The reason that was warned of; there is one warning in a process.
_WARNED: list[str] = []


def library(program: str, *, name: str = "program") -> Library:
    """The C++17 text `program`, compiled for this CPU and loaded. Raises KernelError: native code
    is switched off, there is no C++ compiler, or the program does not compile.

    `#include "cpu_gemm.h"` and the other shipped files of `kernels/` are expanded. Functions to
    be called from Python are declared `GTAPE_EXPORT`, or `extern "C"` with default visibility.
    `name` stands for the program in the compiler's messages.
    """
    runtime()
    return load("cpu", expand(program, name), recipe(), name=name)


def why_not() -> str:
    """Why programs cannot be compiled here; empty where they can. A compiler that is there but does
    not work is warned of, once. What may pass is tried again."""
    try:
        return _trial(switched_off())
    except PassingError as error:
        return _warned(str(error))


# Kept by the switch, so that GTAPE_NATIVE set later in a process counts; `PassingError` is raised
# and so not kept.
@cache
def _trial(_switched_off: bool) -> str:
    try:
        recipe()
        runtime()
    except MissingError as error:
        return str(error)
    except PassingError:
        raise
    except KernelError as error:
        return _warned(str(error))
    return ""


def _warned(reason: str) -> str:
    if not _WARNED:
        _WARNED.append(reason)
        warnings.warn(f"traced functions run without native code, slower: {reason}",
                      NativeCodeWarning, stacklevel=stack_level())
    return reason

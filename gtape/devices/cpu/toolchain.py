"""C++ programs compiled and loaded in this process."""

from __future__ import annotations

import ctypes
from functools import cache

from gtape.core.errors import KernelError
from gtape.devices.compiler import load
from gtape.devices.cpu.options import recipe, switched_off
from gtape.devices.cpu.runtime import runtime
from gtape.devices.cuda.source import expand


def library(program: str, *, name: str = "program") -> ctypes.CDLL:
    """The C++17 text `program`, compiled for this CPU and loaded.

    `#include "cpu_gemm.h"` and the other shipped files of `kernels/` are expanded. Functions to
    be called from Python are declared `GTAPE_EXPORT`, or `extern "C"` with default visibility.
    `name` stands for the program in the compiler's messages.

    Raises:
        KernelError: native code is switched off, there is no C++ compiler, or the program does
            not compile.
    """
    runtime()
    return load("cpu", expand(program, name), recipe(), name=name)


def why_not() -> str:
    """Why programs cannot be compiled here; empty where they can."""
    return _trial(switched_off())


@cache
def _trial(_switched_off: bool) -> str:
    try:
        recipe()
        runtime()
    except KernelError as error:
        return str(error)
    return ""

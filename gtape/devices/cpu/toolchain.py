"""C++ programs compiled and loaded in this process."""

from __future__ import annotations

import warnings
from functools import cache

from gtape.core.context import stack_level
from gtape.core.errors import KernelError, MissingError, NativeCodeWarning, PassingError
from gtape.devices.compiler import Library, load
from gtape.devices.cpu.options import recipe, switched_off
from gtape.devices.cpu.runtime import runtime
from gtape.devices.kernel_source import expand

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

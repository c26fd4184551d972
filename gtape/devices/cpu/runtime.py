"""The library that all generated programs use: one pool of threads, and GEMM."""

from __future__ import annotations

import ctypes
import operator
from functools import cache

from gtape.core.errors import InvalidArgumentError
from gtape.devices.compiler import function, load
from gtape.devices.cpu.cores import MOST, wanted
from gtape.devices.cpu.options import recipe
from gtape.devices.kernel_source import expand_file


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

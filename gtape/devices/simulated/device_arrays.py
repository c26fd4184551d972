"""Device memory as NumPy sees it, for the libraries that Python stands in for.

Arrays made here may be touched only inside an operation of a stream, `later`: outside of it the
memory is closed.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.devices.simulated.stand_ins import Handles

_FAILED = 719  # cudaErrorLaunchFailure, as where a kernel fails
#: What stands beside each byte of device memory (kernels/simulated/marks.h).
_ALLOCATED, _WRITTEN = 1, 2
_tokens = itertools.count(1)
#: Operations by their number: those of graphs may run again at any time.
_operations: Handles[Callable[[], object]] = Handles()


class _Simulated:
    """The library that streams and memory belong to; None while no simulated GPU is in use."""

    core: Any = None


class IllegalAddress(Exception):
    """A library was given memory that is not there."""


def active() -> bool:
    """Whether CuPy's GPU in this process is the simulated one."""
    return _Simulated.core is not None


def use(core: ctypes.CDLL) -> None:
    """Let `core` be the library that streams and memory belong to."""
    # Without them ctypes would cut addresses down to ints of 32 bits.
    core.gtape_simulated_submit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    core.gtape_simulated_allocated.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    core.gtape_simulated_written.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    core.gtape_simulated_written.restype = None
    core.gtape_simulated_is_captured.argtypes = [ctypes.c_void_p]
    core.gtape_simulated_describe.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    core.gtape_simulated_describe.restype = None
    _Simulated.core = core


def current_stream() -> int:
    """CuPy's current stream of this thread."""
    from cupy.cuda import get_current_stream  # late: CuPy comes after the simulated GPU

    return int(get_current_stream().ptr)


def later(stream: int | None, operation: Callable[[], object]) -> int:
    """Submit an operation to a stream; the status of CUDA's runtime."""
    number = next(_tokens)
    captured = bool(_Simulated.core.gtape_simulated_is_captured(stream))

    def run() -> None:
        if not captured:
            del _operations[number]
        operation()

    _operations[number] = run
    return int(_Simulated.core.gtape_simulated_submit(stream, _RUN, number))


def synchronize(stream: int | None) -> int:
    """Wait for a stream; the status of CUDA's runtime."""
    return int(_Simulated.core.cudaStreamSynchronize(ctypes.c_void_p(stream)))


def _run(token: int) -> int:
    try:
        _operations[token]()
    except Exception:  # C is the caller: an exception would be lost in ctypes
        traceback.print_exc()
        return _FAILED
    return 0


# For good: streams of C hold its address.
_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_run)


def array(address: int | None, shape: Sequence[int], dtype: Any,
          strides: Sequence[int] | None = None, *, written: bool = False) -> np.ndarray:
    """An array over device memory. `strides` are in elements; `written`: it will be written.

    Raises:
        IllegalAddress: not all of it is allocated.
    """
    kind = np.dtype(dtype)
    shape = tuple(shape)
    count = math.prod(shape)
    if not count:  # nothing is touched: any address will do, null too
        return np.empty(shape, kind)
    if strides is None:
        strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    extent = (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * kind.itemsize
    address = address or 0
    _check(address, shape, kind, strides, extent, written)
    return _view(address, shape, kind, extent, [s * kind.itemsize for s in strides])


def host_array(address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array over memory of the host, row by row."""
    kind = np.dtype(dtype)
    return _view(address, shape, kind, math.prod(shape) * kind.itemsize, None)


def _view(address: int, shape: tuple[int, ...], kind: np.dtype, extent: int,
          strides: list[int] | None) -> np.ndarray:
    memory: Any = (ctypes.c_char * extent).from_address(address)
    return np.ndarray(shape, kind, memory, strides=strides)


def _check(address: int, shape: Sequence[int], kind: np.dtype, strides: Sequence[int],
           extent: int, written: bool) -> None:
    core = _Simulated.core
    begin = ctypes.c_size_t.in_dll(core, "gtape_simulated_region").value
    size = ctypes.c_size_t.in_dll(core, "gtape_simulated_region_bytes").value
    # Without gaps, C looks at all marks in one call.
    if extent == math.prod(shape) * kind.itemsize or not (
            begin <= address and address + extent <= begin + size):
        bad = None if core.gtape_simulated_allocated(address, extent) else address
        if written and bad is None:
            core.gtape_simulated_written(address, extent)
    else:
        # What lies between the elements may be anybody's, and stays as it was.
        marks = ctypes.c_void_p.in_dll(core, "gtape_simulated_marks").value or 0
        memory: Any = (ctypes.c_char * extent).from_address(marks + address - begin)
        beside = np.ndarray(
            (*shape, kind.itemsize), np.uint8, memory,
            strides=[*(s * kind.itemsize for s in strides), 1])
        free = (beside & _ALLOCATED) == 0
        bad = None
        if free.any():
            places = np.argwhere(free)[0]
            bad = address + int(places[-1]) + sum(
                int(i) * s * kind.itemsize for i, s in zip(places, strides))
        elif written:
            beside |= _WRITTEN
    if bad is not None:
        text = ctypes.create_string_buffer(512)
        core.gtape_simulated_describe(bad, text, 512)
        raise IllegalAddress(f"a library was given an array of shape {tuple(shape)} and {kind} at "
                             f"{address:#x}, which is not all allocated: {bad:#x} is "
                             f"{text.value.decode(errors='replace')}")


def runtime() -> ctypes.CDLL:
    """CUDA's runtime and driver."""
    return _Simulated.core

"""NVML: which devices there are, and their memory.

What only a card has, such as a temperature, is not supported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gtape.devices.simulated import device_arrays
from gtape.devices.simulated.stand_ins import StandIn

_SUCCESS, _UNINITIALIZED, _INVALID, _NOT_SUPPORTED, _NOT_FOUND, _TOO_SMALL = 0, 1, 2, 3, 6, 7
_UNKNOWN = 999
_NAME = b"gtape simulated GPU (kernels run on the CPU)"
_ERRORS = {_SUCCESS: "Success", _UNINITIALIZED: "Uninitialized", _INVALID: "Invalid Argument",
           _NOT_SUPPORTED: "Not Supported", _NOT_FOUND: "Not Found",
           _TOO_SMALL: "Insufficient Size"}
_VERSION, _CUDA = b"13.580.0", 13000
_MAJOR, _MINOR = 75, 76  # cudaDevAttrComputeCapability*
_P, _I, _U, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p

library = StandIn("libnvidia-ml.so.1", "nvml", _NOT_SUPPORTED, _UNKNOWN)
# Kept here, since callers hold their addresses.
_texts = {code: ctypes.create_string_buffer(text.encode())
          for code, text in {**_ERRORS, _UNKNOWN: "Unknown Error"}.items()}


class _Users:
    """How often the library was started and not yet ended."""

    count = 0


def _known(name: str, *types: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A function that needs nvmlInit before it. Those of devices are given their number: `types`
    begins with _P then, the handle."""
    def add(function: Callable[..., int]) -> Callable[..., int]:
        def call(*args: Any) -> int:
            if not _Users.count:
                return _UNINITIALIZED
            if name.startswith("DeviceGetHandle") or not types or types[0] is not _P or (
                    not name.startswith("Device") or name.startswith("DeviceGetCount")):
                return function(*args)
            number = (args[0] or 0) - 1
            return function(number, *args[1:]) if 0 <= number < _count() else _INVALID

        library.function(name, *types)(call)
        return function

    return add


def _count() -> int:
    found = _I()
    device_arrays.runtime().cudaGetDeviceCount(ctypes.byref(found))
    return found.value


def _attribute(which: int, number: int) -> int:
    found = _I()
    device_arrays.runtime().cudaDeviceGetAttribute(ctypes.byref(found), which, number)
    return found.value


def _text(value: bytes, to: int, size: int) -> int:
    if len(value) >= size:
        return _TOO_SMALL
    ctypes.memmove(to, value + b"\0", len(value) + 1)
    return _SUCCESS


def _init(*_: int) -> int:
    _Users.count += 1
    return _SUCCESS


library.function("Init")(_init)
library.function("Init_v2")(_init)
library.function("InitWithFlags", _U)(_init)


@_known("Shutdown")
def _shutdown() -> int:
    _Users.count -= 1
    return _SUCCESS


@library.function("ErrorString", _I, returns=_P)
def _error(code: int) -> int:
    return ctypes.addressof(_texts.get(code, _texts[_UNKNOWN]))


# ------------------------------------------------------------------ the system


@_known("SystemGetDriverVersion", _P, _U)
@_known("SystemGetNVMLVersion", _P, _U)
def _version(to: int, size: int) -> int:
    return _text(_VERSION, to, size)


@_known("SystemGetCudaDriverVersion", _P)
@_known("SystemGetCudaDriverVersion_v2", _P)
def _cuda(to: int) -> int:
    _I.from_address(to).value = _CUDA
    return _SUCCESS


@_known("DeviceGetCount", _P)
@_known("DeviceGetCount_v2", _P)
def _device_count(to: int) -> int:
    _U.from_address(to).value = _count()
    return _SUCCESS


@_known("DeviceGetHandleByIndex", _U, _P)
@_known("DeviceGetHandleByIndex_v2", _U, _P)
def _by_index(number: int, to: int) -> int:
    if number >= _count():
        return _INVALID
    _P.from_address(to).value = number + 1  # from 1: a handle of 0 would be null
    return _SUCCESS


@_known("DeviceGetHandleByPciBusId", _S, _P)
@_known("DeviceGetHandleByPciBusId_v2", _S, _P)
def _by_address(address: bytes, to: int) -> int:
    number = _I()
    if device_arrays.runtime().cudaDeviceGetByPCIBusId(ctypes.byref(number), address):
        return _NOT_FOUND
    _P.from_address(to).value = number.value + 1
    return _SUCCESS


# ------------------------------------------------------------------ devices


@_known("DeviceGetName", _P, _P, _U)
def _name(number: int, to: int, size: int) -> int:
    return _text(_NAME, to, size)


@_known("DeviceGetIndex", _P, _P)
def _index(number: int, to: int) -> int:
    _U.from_address(to).value = number
    return _SUCCESS


@_known("DeviceGetCudaComputeCapability", _P, _P, _P)
def _capability(number: int, major: int, minor: int) -> int:
    _I.from_address(major).value = _attribute(_MAJOR, number)
    _I.from_address(minor).value = _attribute(_MINOR, number)
    return _SUCCESS


def _memory(number: int) -> tuple[int, int]:
    """Free and all bytes of a device."""
    core, before = device_arrays.runtime(), _I()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    core.cudaGetDevice(ctypes.byref(before))
    core.cudaSetDevice(number)
    core.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    core.cudaSetDevice(before)  # the program's choice, not NVML's to change
    return free.value, total.value


@_known("DeviceGetMemoryInfo", _P, _P)
def _memory_info(number: int, to: int) -> int:
    free, total = _memory(number)
    (ctypes.c_ulonglong * 3).from_address(to)[:] = [total, free, total - free]
    return _SUCCESS


@_known("DeviceGetMemoryInfo_v2", _P, _P)
def _memory_info_v2(number: int, to: int) -> int:
    free, total = _memory(number)
    # version and padding, total, reserved, free, used
    (ctypes.c_ulonglong * 5).from_address(to)[1:] = [total, 0, free, total - free]
    return _SUCCESS


@_known("DeviceGetUtilizationRates", _P, _P)
@_known("DeviceGetTemperature", _P, _I, _P)
@_known("DeviceGetPowerUsage", _P, _P)
def _of_cards(number: int, *_: int) -> int:
    return _NOT_SUPPORTED

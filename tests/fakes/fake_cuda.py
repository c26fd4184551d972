"""`cupy.cuda` of the fake CuPy: the current device of a thread, memory that runs out, streams."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace

from tests.fakes import fake_streams

DEVICES = 2
TOTAL = 1 << 28

_thread = threading.local()
#: Bytes in use, and the most so far, on each device.
used: Counter[int] = Counter()
peaks: Counter[int] = Counter()


def current() -> int:
    """The number of the device that functions work on in this thread."""
    return getattr(_thread, "stack", (0,))[-1]


class Device:
    """`with Device(1):` functions work on that device."""

    def __init__(self, device: int | None = None) -> None:
        self.id = current() if device is None else int(device)

    def __enter__(self) -> Device:
        _thread.stack = (*getattr(_thread, "stack", (0,)), self.id)
        return self

    def __exit__(self, *exc: object) -> None:
        _thread.stack = _thread.stack[:-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id


class OutOfMemoryError(MemoryError):
    """The device's memory is used up."""


class CUDARuntimeError(RuntimeError):
    """An error of the CUDA runtime."""


def allocate(device: int, size: int) -> None:
    if used[device] + size > TOTAL:
        raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
    used[device] += size
    peaks[device] = max(peaks[device], used[device])


def release(device: int, size: int) -> None:
    used[device] -= size


class Pool:
    """The memory pool: what is freed stays reserved."""

    def used_bytes(self) -> int:
        return used[current()]

    def total_bytes(self) -> int:
        return peaks[current()]


def check(*devices: int) -> None:
    """Raises ValueError for arrays elsewhere, as on cards without peer access."""
    for device in devices:
        if device != current():
            raise ValueError(f"Array device must be same as the current device: array device = "
                             f"{device} while current = {current()}")


memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
runtime = SimpleNamespace(
    getDeviceCount=lambda: DEVICES,
    getDevice=current,
    getDeviceProperties=lambda index: {"name": f"Fake {index}".encode()},
    deviceGetPCIBusId=lambda index: f"0000:0{index}:00.0",
    memGetInfo=lambda: (TOTAL - used[current()], TOTAL),
    CUDARuntimeError=CUDARuntimeError)

Event, Stream = fake_streams.Event, fake_streams.Stream
alloc_pinned_memory = fake_streams.PinnedMemory
get_current_stream = fake_streams.current

"""GPUs without a GPU: the memory of the fake CuPy, and kernels run by the emulator."""

from __future__ import annotations

import sys
from typing import Any

from gtape.devices import probe
from gtape.devices.cuda.runtime.executor import Executor
from gtape.kernelcheck.emulator.executor import Emulator
from tests.fakes import fake_cupy, fake_cupyx

_MULTIPROCESSORS = 4
_SHARED_BYTES = 227 * 1024
#: One for all tests, so that what it has built is kept.
_EMULATOR = Emulator()


def executor(cupy: Any, index: int) -> Executor:
    """Kernels on the memory of the fake CuPy."""
    return Executor(cupy, cupy.empty, _EMULATOR, _MULTIPROCESSORS, _SHARED_BYTES)


def install() -> None:
    """From now on this process has one GPU, which the emulator is."""
    sys.modules["cupy"] = fake_cupy
    sys.modules["cupyx"] = fake_cupyx
    fake_cupy.cuda.DEVICES = 1
    probe._executor = executor

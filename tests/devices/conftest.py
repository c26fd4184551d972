"""`gpus`: the machine seems to have two GPUs, which are NumPy underneath (see fake_cupy.py).

Every test runs twice: once with CuPy's functions alone, and once with gtape's kernels, which the
emulator runs on the same memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import fake_cupy
import pytest

from gtape.devices import probe
from gtape.devices.cuda.executor import Executor
from gtape.devices.emulator.executor import Emulator

_MULTIPROCESSORS = 4
_SHARED_BYTES = 227 * 1024
#: One for all tests, so that what it has built is kept.
_EMULATOR = Emulator()


def emulated(cupy: Any, index: int) -> Executor:
    """Kernels on the memory of the fake CuPy."""
    return Executor(cupy, cupy.empty, _EMULATOR, _MULTIPROCESSORS, _SHARED_BYTES)


@pytest.fixture(params=["functions", "kernels"])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch,
         ) -> Iterator[tuple[object, ...]]:
    """The two devices; new tensors go to GPU:0."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr(probe, "_executor",
                        emulated if request.param == "kernels" else lambda cupy, index: None)
    monkeypatch.setenv(probe.VARIABLE, "auto")
    probe.forget()
    fake_cupy.copies.clear()
    yield probe.probe().devices
    probe.forget()

"""Machines with GPUs that have none: `gpus`, whose memory is NumPy's, and kernels run on the CPU.

Kernels run under the emulator, which needs Linux and a C++ compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gtape.devices import probe
from gtape.kernelcheck.checks.bench import Bench
from gtape.kernelcheck.emulator.build import why_not
from gtape.kernelcheck.emulator.executor import (
    SCHEDULES,
    EmulatedExecutor,
    emulated_bench,
    emulated_executor,
)
from tests.fakes import emulated, fake_cupy, fake_cupyx


@pytest.fixture(params=["functions", "kernels"])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch,
         ) -> Iterator[tuple[object, ...]]:
    """The machine seems to have two GPUs, which are NumPy underneath (see fake_cupy.py): once with
    CuPy's functions alone, and once with gtape's kernels, which the emulator runs on the same
    memory; where asked for as "card", those that there are. New tensors go to GPU:0."""
    if request.param == "card":
        monkeypatch.setenv(probe.VARIABLE, "auto")
        yield probe.probe().devices
        return
    if request.param == "kernels" and why_not():
        pytest.skip(why_not())
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setitem(sys.modules, "cupyx", fake_cupyx)
    monkeypatch.setattr(fake_cupy.cuda, "DEVICES", 2)  # one with GTAPE_EMULATED_GPU=1
    kernels = emulated.executor if request.param == "kernels" else lambda cupy, index: None
    monkeypatch.setattr(probe, "_executor", kernels)
    monkeypatch.setenv(probe.VARIABLE, "auto")
    probe.forget()
    fake_cupy.copies.clear()
    yield probe.probe().devices
    probe.forget()


@pytest.fixture
def emulator() -> None:
    """Skips the test where kernels cannot be run on the CPU."""
    if why_not():
        pytest.skip(why_not())


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest) -> str:
    """Each order in which the emulator runs threads and blocks."""
    return request.param


@pytest.fixture
def gpu(emulator: None, schedule: str) -> EmulatedExecutor:
    """An emulated executor, in each schedule."""
    return emulated_executor(schedule)


@pytest.fixture
def bench(emulator: None, schedule: str) -> Bench:
    """An emulated bench, in each schedule."""
    return emulated_bench(schedule)

"""Kernels run under the emulator, which needs Linux and a C++ compiler."""

from __future__ import annotations

import pytest

from gtape.kernelcheck.checks.bench import Bench
from gtape.kernelcheck.emulator.build import why_not
from gtape.kernelcheck.emulator.executor import (
    SCHEDULES,
    EmulatedExecutor,
    emulated_bench,
    emulated_executor,
)


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

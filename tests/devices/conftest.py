"""`gpus`: the machine seems to have two GPUs, which are NumPy underneath (see fake_cupy.py).

Every test runs twice: once with CuPy's functions alone, and once with gtape's kernels, which the
emulator runs on the same memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import emulated
import fake_cupy
import fake_cupyx
import pytest

from gtape.devices import probe
from gtape.kernelcheck.emulator.build import why_not


@pytest.fixture(params=["functions", "kernels"])
def gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch,
         ) -> Iterator[tuple[object, ...]]:
    """The two devices; new tensors go to GPU:0."""
    if request.param == "kernels" and why_not():
        pytest.skip(why_not())
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setitem(sys.modules, "cupyx", fake_cupyx)
    kernels = emulated.executor if request.param == "kernels" else lambda cupy, index: None
    monkeypatch.setattr(probe, "_executor", kernels)
    monkeypatch.setenv(probe.VARIABLE, "auto")
    probe.forget()
    fake_cupy.copies.clear()
    yield probe.probe().devices
    probe.forget()

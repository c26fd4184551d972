"""`gpus`: the machine seems to have two GPUs, which are NumPy underneath (see fake_cupy.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import fake_cupy
import pytest

from gtape.devices import probe


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[object, ...]]:
    """The two devices; new tensors go to GPU:0."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setenv(probe.VARIABLE, "auto")
    probe.forget()
    fake_cupy.copies.clear()
    yield probe.probe().devices
    probe.forget()

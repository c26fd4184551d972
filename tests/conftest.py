"""Where tests compute, and what the `gpu` marker means.

Tests run on the CPU, also where a GPU is present, unless they are marked `gpu`. A test that takes
the fixture `device` runs once for each kind of device. With GTAPE_EMULATED_GPU=1 the tests marked
`gpu` run on memory of the host, their kernels by the emulator; arrays are then a strict stand-in
for CuPy's.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

import gtape as tf
from gtape.devices import probe

settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci")

_REQUIRED = os.environ.get("GTAPE_REQUIRE_GPU") == "1"
_EMULATED = os.environ.get("GTAPE_EMULATED_GPU") == "1"
if _EMULATED:
    sys.path.insert(0, str(Path(__file__).parent / "devices"))
    import emulated

    emulated.install()


#: Tests of native programs. Elsewhere a traced function runs without the compiler, which would take
#: half a second for each; GTAPE_NATIVE, where it is set, decides for all.
_NATIVE = {
    "agreement.py", "test_aliasing.py", "test_assigned_variables.py", "test_bad_programs.py",
    "test_bodies.py", "test_docs.py", "test_docs_function.py", "test_dtypes.py",
    "test_every_op.py", "test_forks.py", "test_large.py",
    "test_native_draws.py", "test_native_moves.py", "test_native_updates.py", "test_passes.py",
    "test_random_graphs.py", "test_results.py", "test_state.py", "test_threads.py"}
_NATIVE_GIVEN = "GTAPE_NATIVE" in os.environ


def _why_no_gpu() -> str:
    """Empty where GPU:0 can be used."""
    found = probe.probe()
    if any(device.index == 0 for device in found.devices):
        return ""
    return "; ".join(f"{f.name}: {f.reason}" for f in found.findings if not f.usable)


#: Asked once: later tests may put a stand-in in place of CuPy.
_NO_GPU = _why_no_gpu()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not _NATIVE_GIVEN:
        native = item.path.name in _NATIVE or item.path.parent.name == "cpu"
        os.environ["GTAPE_NATIVE"] = "1" if native else "0"
    if item.get_closest_marker("gpu") is None or not _NO_GPU:
        return
    if _REQUIRED:
        pytest.fail(f"GTAPE_REQUIRE_GPU=1, but there is no usable GPU: {_NO_GPU}", pytrace=False)
    pytest.skip(f"no usable GPU: {_NO_GPU}")


@pytest.fixture(params=["CPU:0", pytest.param("GPU:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a device; new tensors go there during the test."""
    with tf.device(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def _on_the_cpu(request: pytest.FixtureRequest) -> Iterator[None]:
    elsewhere = _NO_GPU or request.node.get_closest_marker("gpu") or (
        "devices" in request.node.path.parts)
    with nullcontext() if elsewhere else tf.device("CPU:0"):
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests needed a GPU that was not there."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "gpu" in r.keywords]
    reasons = Counter(str(r.longrepr[2]).removeprefix("Skipped: ") for r in skipped)
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{count} gpu tests were skipped: {reason}", yellow=True)

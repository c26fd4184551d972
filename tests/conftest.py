"""Where tests compute, and what the markers `gpu` and `native` mean.

Tests run on the CPU, also where a GPU is present, unless they are marked `gpu`: those are not
collected where there is no GPU, and fail there with GTAPE_REQUIRE_GPU=1. A test that takes the
fixture `device` runs once for each kind of device that there is; one that takes `gpus`, on GPUs
whose memory is NumPy's (tests/fakes). A traced function runs without the compiler, which would take
half a second for each, unless its test is marked `native`. Its program then has guard zones around
its values, unless the marker says `zones=False`: a test of where values lie. With
GTAPE_EMULATED_GPU=1 the tests marked `gpu` run on memory of the host, their kernels by the
emulator; arrays are then a strict stand-in for CuPy's. With GTAPE_DEVICE=simulated they run on the
real CuPy (docs/simulator.md). GTAPE_TEST_PART=3/8 runs every eighth test, chosen by its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from zlib import crc32

import pytest
from hypothesis import settings

import gtape as tf
from gtape.devices import probe
from gtape.devices.cpu import toolchain

pytest_plugins = ["tests.fakes.fixtures"]
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci")

_REQUIRED = os.environ.get("GTAPE_REQUIRE_GPU") == "1"
_EMULATED = os.environ.get("GTAPE_EMULATED_GPU") == "1"
if _EMULATED:
    from tests.fakes import emulated

    emulated.install()


#: GTAPE_NATIVE, where it is set, decides for all tests.
_NATIVE_GIVEN = "GTAPE_NATIVE" in os.environ
#: The same of GTAPE_GUARD_ZONES.
_ZONES_GIVEN = "GTAPE_GUARD_ZONES" in os.environ
_NO_COMPILER = toolchain.why_not()


def _why_no_gpu() -> str:
    """Empty where GPU:0 can be used."""
    found = probe.probe()
    if any(device.index == 0 for device in found.devices):
        return ""
    return "; ".join(f"{f.name}: {f.reason}" for f in found.findings if not f.usable)


#: Asked once: later tests may put a stand-in in place of CuPy.
_NO_GPU = _why_no_gpu()
_LEFT_OUT = bool(_NO_GPU) and not _REQUIRED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = os.environ.get("GTAPE_TEST_PART")
    if part:
        number, count = map(int, part.split("/"))
        items[:] = [i for i in items if crc32(i.nodeid.encode()) % count == number]
    if _LEFT_OUT:
        config.hook.pytest_deselected(items=[i for i in items if i.get_closest_marker("gpu")])
        items[:] = [i for i in items if i.get_closest_marker("gpu") is None]


def pytest_runtest_setup(item: pytest.Item) -> None:
    native = item.get_closest_marker("native")
    if not _NATIVE_GIVEN:
        os.environ["GTAPE_NATIVE"] = "1" if native else "0"
    if not _ZONES_GIVEN:
        zones = native is not None and native.kwargs.get("zones", True)
        os.environ["GTAPE_GUARD_ZONES"] = "1" if zones else "0"
    if _NO_COMPILER and native and native.kwargs.get("required", True):
        pytest.skip(f"no compiler: {_NO_COMPILER}")
    if _NO_GPU and item.get_closest_marker("gpu"):
        pytest.fail(f"GTAPE_REQUIRE_GPU=1, but there is no usable GPU: {_NO_GPU}", pytrace=False)


@pytest.fixture(params=["CPU:0"] if _LEFT_OUT else [
    "CPU:0", pytest.param("GPU:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a device; new tensors go there during the test."""
    with tf.device(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def _on_the_cpu(request: pytest.FixtureRequest) -> Iterator[None]:
    elsewhere = "gpus" in request.fixturenames or request.node.get_closest_marker("gpu")
    with nullcontext() if _NO_GPU or elsewhere else tf.device("CPU:0"):
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _LEFT_OUT:
        terminalreporter.write_line(f"tests marked gpu were left out; no usable GPU: {_NO_GPU}",
                                    yellow=True)

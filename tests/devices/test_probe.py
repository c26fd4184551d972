"""The probe says why a GPU cannot be used, and never raises."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

import gtape as tf
from gtape.devices import probe
from tests.fakes import fake_cupy


def _unusable() -> str:
    probe.forget()
    assert tf.constant(1.0).device == "CPU:0" and tf.config.list_physical_devices("GPU") == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="no usable device GPU:0"):
        tf.device("GPU:0")
    return "; ".join(f.reason for f in probe.report() if not f.usable)


def _raises(error: Exception):
    def function(*args: object, **kwargs: object) -> None:
        raise error

    return function


def test_it_finds_the_gpus(gpus):
    assert [d.name for d in gpus] == ["GPU:0", "GPU:1"]
    assert [(f.name, f.usable) for f in probe.report()] == [
        ("CPU:0", True), ("CuPy", True), ("GPU:0", True), ("GPU:1", True)]
    assert probe.probe().devices is gpus


def test_cupy_is_not_installed(gpus, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec",
                        lambda name: None if name == "cupy" else found(name))
    assert 'pip install "gtape[cuda12]"' in _unusable()


def test_cupy_cannot_be_imported(gpus, monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text(
        "try:\n    raise OSError('libcudart.so.12: cannot open shared object file')\n"
        "except OSError as error:\n    raise ImportError('a page\\nof advice') from error\n")
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _unusable() == ("CuPy could not be imported: OSError: libcudart.so.12: cannot open "
                           "shared object file")


def test_cupy_is_half_installed(gpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    assert "CuPy could not be imported" in _unusable()


def test_there_is_no_driver(gpus, monkeypatch):
    monkeypatch.setattr(fake_cupy.cuda.runtime, "getDeviceCount", _raises(
        fake_cupy.cuda.CUDARuntimeError("cudaErrorInsufficientDriver: the driver is too old")))
    assert _unusable() == ("no CUDA device can be reached: CUDARuntimeError: "
                           "cudaErrorInsufficientDriver: the driver is too old")


def test_a_kernel_cannot_be_compiled(gpus, monkeypatch):
    monkeypatch.setattr(fake_cupy, "arange", _raises(RuntimeError("no NVRTC\nlong text")),
                        raising=False)
    assert _unusable() == "; ".join(["a test kernel failed: RuntimeError: no NVRTC"] * 2)


def test_a_kernel_gives_nonsense(gpus, monkeypatch):
    monkeypatch.setattr(fake_cupy, "arange", lambda n: fake_cupy.zeros(n), raising=False)
    assert "a test kernel gave a wrong sum" in _unusable()


def test_the_second_gpu_is_taken_when_the_first_fails(gpus, monkeypatch):
    function = fake_cupy.cuda.runtime.getDeviceProperties
    monkeypatch.setattr(fake_cupy.cuda.runtime, "getDeviceProperties",
                        lambda i: function(i) if i else _raises(RuntimeError("ECC error"))())
    probe.forget()
    assert tf.constant(1.0).device == "GPU:1"
    assert any(f.reason == "a test kernel failed: RuntimeError: ECC error"
               for f in probe.report())


def test_cpu_means_that_no_gpu_is_looked_for(gpus, monkeypatch):
    monkeypatch.setenv("GTAPE_DEVICE", "cpu")
    monkeypatch.delitem(sys.modules, "cupy")
    assert _unusable() == "GTAPE_DEVICE=cpu: no GPU was looked for"

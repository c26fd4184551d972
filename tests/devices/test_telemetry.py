"""Memory and utilisation of devices, and what happens when memory runs out."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gtape as tf
from tests.fakes import fake_cupy

MIB = 1 << 20


def test_memory_of_the_host():
    info = tf.config.experimental.get_memory_info("CPU:0")
    assert min(info["current"], info["peak"]) > 0


def test_memory_of_a_gpu(gpus):
    before = tf.config.experimental.get_memory_info("GPU:1")
    with tf.device("GPU:1"):
        x = tf.zeros((MIB,))
    after = tf.config.experimental.get_memory_info("/device:GPU:1")
    assert after["current"] - before["current"] == x._a.nbytes == 4 * MIB
    assert after["peak"] >= after["current"] and after["total"] == fake_cupy.cuda.TOTAL
    assert before["free"] - after["free"] == 4 * MIB
    del x
    assert tf.config.experimental.get_memory_info("GPU:1")["current"] == before["current"]


def test_memory_of_nothing(gpus):
    with pytest.raises(tf.errors.InvalidArgumentError, match="no usable device GPU:9"):
        tf.config.experimental.get_memory_info("GPU:9")


def test_gradients_are_freed_on_the_device(gpus):
    gc.collect()  # what other tests left is not to be freed meanwhile
    before = tf.config.experimental.get_memory_info("GPU:0")["current"]
    x = tf.Variable(np.ones(MIB // 4, np.float32))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(tf.sin(x)))
    held = tf.config.experimental.get_memory_info("GPU:0")["current"] - before
    assert tape.memory().total == 2 * MIB and 2 * MIB <= held < 2.1 * MIB
    g = tape.gradient(y, x)
    assert tf.config.experimental.get_memory_info("GPU:0")["current"] - before < 2.1 * MIB
    del x, y, g, tape
    assert tf.config.experimental.get_memory_info("GPU:0")["current"] == before


def test_running_out_of_memory_says_how_much_was_wanted(gpus):
    wanted = np.zeros(fake_cupy.cuda.TOTAL // 4, np.float64)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"GPU:0: Out of memory.*536,870,9"):
        tf.constant(wanted)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"1,073,741,824"):
        tf.zeros((fake_cupy.cuda.TOTAL,))
    half = tf.zeros((fake_cupy.cuda.TOTAL // 6,))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        half * half
    assert tf.constant(1.0).device == "GPU:0"


def test_running_out_of_memory_says_what_the_tape_holds(gpus, monkeypatch):
    used = fake_cupy.cuda.used[0]
    monkeypatch.setattr(fake_cupy.cuda, "TOTAL", used + (1 << 20))
    x = tf.Variable(np.ones(1 << 15, np.float32))
    with tf.GradientTape() as tape:
        y = tf.exp(x)
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            for _ in range(20):
                y = tf.tanh(y)
    said = str(caught.value)
    del y, caught
    assert "The tape holds 0.9 MiB" in said and "tape.memory()" in said
    assert "MiB  tanh  " in said and f"{__file__}:" in said
    assert len(tape.memory()) > 3
    del tape
    assert float(tf.reduce_sum(x * 1.0)) == 1 << 15


@pytest.fixture
def nvml(monkeypatch):
    """nvidia-ml-py with one answer for each question."""
    asked = []
    module = SimpleNamespace(
        nvmlInit=lambda: None, NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetHandleByPciBusId=lambda address: asked.append(address) or "handle",
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=87, memory=12),
        nvmlDeviceGetTemperature=lambda handle, sensor: 61,
        nvmlDeviceGetPowerUsage=lambda handle: 345_600)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return asked


def test_utilisation_is_asked_of_the_right_card(gpus, nvml):
    found = tf.config.experimental.get_utilization("GPU:1")
    assert found == {"gpu_percent": 87, "memory_percent": 12, "temperature_c": 61,
                     "power_w": 345.6}
    assert nvml == ["0000:01:00.0"]


def test_utilisation_needs_a_gpu_and_nvml(gpus, monkeypatch):
    with pytest.raises(tf.errors.UnavailableError, match="GPUs only"):
        tf.config.experimental.get_utilization("CPU:0")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(tf.errors.UnavailableError, match="pip install nvidia-ml-py"):
        tf.config.experimental.get_utilization("GPU:0")


def test_nvml_without_a_driver(gpus, nvml, monkeypatch):
    def fails():
        raise RuntimeError("Driver Not Loaded")

    monkeypatch.setattr(sys.modules["pynvml"], "nvmlInit", fails)
    with pytest.raises(tf.errors.UnavailableError, match="Driver Not Loaded"):
        tf.config.experimental.get_utilization("GPU:0")

"""Placement, interchange and memory of a GPU, where there is one."""

from __future__ import annotations

import os

import numpy as np
import pytest

import gtape as tf

pytestmark = pytest.mark.gpu
real_card = pytest.mark.skipif(os.environ.get("GTAPE_EMULATED_GPU") == "1",
                               reason="the emulated GPU has no driver")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def test_new_tensors_go_there(cupy, monkeypatch):
    monkeypatch.setenv("GTAPE_DEVICE", "auto")
    x = tf.constant([1.0, 2.0])
    assert x.device == "GPU:0" and isinstance(x._a, cupy.ndarray)
    assert (x * 2.0).numpy().tolist() == [2.0, 4.0]
    assert [d.device_type for d in tf.config.list_physical_devices()][:2] == ["CPU", "GPU"]


def test_moving_and_mixing(cupy):
    with tf.device("GPU:0"):
        x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum((x * x).cpu())
    assert y.device == "CPU:0" and tape.gradient(y, x).device == "GPU:0"
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"GPU:0 made at .*CPU:0 made at"):
        x.value() + x.value().cpu()


def test_nothing_is_copied_in_silence(cupy):
    with tf.device("GPU:0"):
        x = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError):
        np.asarray(x._a)
    assert np.asarray(x).tolist() == [1.0, 2.0]


@real_card
def test_interchange(cupy):
    array = cupy.arange(3, dtype=cupy.float32)
    for x in (tf.experimental.from_dlpack(array), tf.experimental.from_array(array)):
        assert x.device == "GPU:0" and x._a.data.ptr == array.data.ptr
    assert cupy.from_dlpack(x).data.ptr == array.data.ptr
    assert cupy.asarray(x).data.ptr == array.data.ptr
    capsule = tf.experimental.dlpack.to_dlpack(x)
    assert tf.experimental.dlpack.from_dlpack(capsule)._a.data.ptr == array.data.ptr


@real_card
def test_telemetry():
    with tf.device("GPU:0"):
        before = tf.config.experimental.get_memory_info("GPU:0")
        x = tf.zeros((1 << 20,))
    after = tf.config.experimental.get_memory_info("GPU:0")
    assert after["current"] - before["current"] >= x._a.nbytes
    pytest.importorskip("pynvml")
    assert 0 <= tf.config.experimental.get_utilization("GPU:0")["gpu_percent"] <= 100


def test_running_out_of_memory():
    total = tf.config.experimental.get_memory_info("GPU:0")["total"]
    with tf.device("GPU:0"), pytest.raises(tf.errors.ResourceExhaustedError, match="Out of memory"):
        tf.zeros((total // 2,), tf.float64)

"""The same on a real GPU, where there is one."""

from __future__ import annotations

import os

import numpy as np
import pytest
from test_declared import CASES, results
from test_gradients import PROGRAMS, dense

import gtape as tf
from gtape.core.device import CPU
from gtape.core.placement import on
from gtape.devices import probe

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


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program(program):
    with tf.device("CPU:0"):
        expected = [dense(v) for v in program()]
    with tf.device("GPU:0"):
        found = [dense(v) for v in program()]
    for a, b in zip(expected, found, strict=True):
        assert b.device == "GPU:0"
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("op, case, dtype", CASES,
                         ids=[f"{op.name}-{i}-{d}" for i, (op, _, d) in enumerate(CASES)])
def test_a_declared_case(op, case, dtype):
    (device,) = (d for d in probe.probe().devices if d.index == 0)
    with on(CPU):
        expected, found = (results(op, case, dtype, place) for place in (CPU, device))
    tolerance = 2e-2 if dtype == "float16" else 2e-4 if dtype in ("float32", "complex64") else 1e-8
    for a, b in zip(expected, found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            a, b = dense(a), dense(b)
            assert b.device == "GPU:0"
            np.testing.assert_allclose(a._peek(), b._peek(), rtol=tolerance, atol=tolerance)


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

"""Where new tensors go: GTAPE_DEVICE, tf.device, device names."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from gtape.devices import probe
from tests.fakes import fake_cupy


@pytest.mark.parametrize("choice, device", [
    ("auto", "GPU:0"), ("", "GPU:0"), ("gpu", "GPU:0"), ("GPU:1", "GPU:1"), ("cpu", "CPU:0")])
def test_the_environment_chooses(gpus, monkeypatch, choice, device):
    monkeypatch.setenv("GTAPE_DEVICE", choice)
    probe.forget()
    made = [tf.constant(1.0), tf.zeros((2,)), tf.Variable([1.0]), tf.random.normal((2,)),
            tf.eye(2), tf.range(3), tf.one_hot([0, 1], 2), tf.convert_to_tensor(np.ones(2)),
            tf.constant(1.0) + 2, tf.square(3.0), tf.linspace(0.0, 1.0, 3), tf.fill([2], 1.0)]
    assert {t.device for t in made} == {device}


def test_without_a_gpu_it_is_the_cpu(gpus, monkeypatch):
    monkeypatch.setattr(fake_cupy.cuda, "DEVICES", 0)
    monkeypatch.setattr(fake_cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    probe.forget()
    assert tf.constant(1.0).device == "CPU:0"


@pytest.mark.parametrize("choice", ["gpu:7", "gpu"])
def test_a_gpu_that_is_not_there_is_an_error_with_the_reason(gpus, monkeypatch, choice):
    monkeypatch.setenv("GTAPE_DEVICE", choice)
    monkeypatch.setattr(fake_cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    probe.forget()
    with pytest.raises(tf.errors.InvalidArgumentError, match="the driver reports no device"):
        tf.constant(1.0)


def test_an_unknown_choice_is_an_error(gpus, monkeypatch):
    monkeypatch.setenv("GTAPE_DEVICE", "tpu")
    probe.forget()
    with pytest.raises(tf.errors.InvalidArgumentError, match="auto, cpu, gpu, gpu:N or simulated"):
        tf.constant(1.0)


def test_device_blocks(gpus):
    assert tf.constant(1.0).device == "GPU:0"
    with tf.device("GPU:1"):
        inner = tf.constant(1.0)
        with tf.device("/device:CPU:0"):
            assert tf.zeros((1,)).device == "CPU:0"
            with tf.device(None):
                assert tf.zeros((1,)).device == "GPU:0"
        assert tf.zeros((1,)).device == "GPU:1"
    assert inner.device == "GPU:1" and (inner + 1.0).device == "GPU:1"
    assert (inner * inner).device == "GPU:1" and tf.reduce_sum(inner).device == "GPU:1"


@pytest.mark.parametrize("name", ["GPU:1", "gpu:1", "/GPU:1", "/device:GPU:1",
                                  "/job:localhost/replica:0/task:0/device:GPU:1",
                                  tf.DeviceSpec(device_type="GPU", device_index=1)])
def test_device_names(gpus, name):
    with tf.device(name):
        assert tf.zeros(()).device == "GPU:1"


@pytest.mark.parametrize("name, said", [
    ("GPU:7", "no usable device GPU:7"), ("CPU:1", "no usable device CPU:1"), ("TPU:0", "CPU:0"),
    ("", "CPU:0")])
def test_wrong_device_names(gpus, name, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.device(name)


def test_device_spec():
    spec = tf.DeviceSpec.from_string("/device:GPU:1")
    assert (spec.device_type, spec.device_index) == ("GPU", 1)
    assert spec.to_string() == "/device:GPU:1"
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.DeviceSpec.from_string("nowhere")


def test_strings_stay_on_the_host(gpus):
    for made in (tf.constant("a"), tf.constant(["a", "b"]), tf.zeros((2,), tf.string),
                 tf.constant("a").gpu(), tf.identity(tf.constant("a"))):
        assert made.device == "CPU:0" and made.dtype == tf.string


def test_values_take_the_device_of_the_tensor_beside_them(gpus):
    with tf.device("GPU:1"):
        x = tf.constant([1.0, 2.0])
    with tf.device("CPU:0"):
        for y in (x + 1.0, 2 * x, x + np.ones(2, np.float32), x ** 2, tf.maximum(x, 0.0),
                  tf.where(x > 1, x, 0.0), x[0], x[tf.newaxis], tf.concat([x, [3.0]], 0),
                  tf.zeros_like(x), tf.ones_like(x), tf.clip_by_value(x, 0.0, 1.0)):
            assert y.device == "GPU:1"


def test_what_is_there_is_listed(gpus):
    assert [d.name for d in tf.config.list_physical_devices()] == [
        "/physical_device:CPU:0", "/physical_device:GPU:0", "/physical_device:GPU:1"]
    found = tf.config.list_physical_devices("GPU")
    assert [d.device_type for d in found] == ["GPU", "GPU"]
    assert tf.config.experimental.get_device_details(found[1]) == {"device_name": "Fake 1"}
    assert tf.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"


def test_threads_have_their_own_block(gpus):
    from concurrent.futures import ThreadPoolExecutor

    with tf.device("GPU:1"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: tf.zeros(()).device).result() == "GPU:0"

"""Arrays in and out without a copy: DLPack and __cuda_array_interface__."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf
from tests.fakes import fake_cupy


def _memory(array):
    return array.__array_interface__["data"][0]


# ---------------------------------------------------------------- the host, for real


def test_from_dlpack_shares_the_hosts_memory():
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x = tf.experimental.from_dlpack(array)
    assert x.dtype == tf.float32 and x.shape == (2, 3) and x.device == "CPU:0"
    assert _memory(x._a) == _memory(array)
    array[0, 0] = 7.0
    assert x.numpy()[0, 0] == 7.0


def test_numpy_takes_a_tensor_without_a_copy():
    with tf.device("CPU:0"):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x._a) and array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.__dlpack_device__() == (1, 0)


def test_capsules():
    array = np.arange(3.0)
    x = tf.experimental.dlpack.from_dlpack(array)
    y = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    assert _memory(y._a) == _memory(array)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64", "bool", "complex64"])
def test_dtypes(dtype):
    array = np.ones(3, dtype)
    x = tf.experimental.from_dlpack(array)
    assert x.dtype.name == dtype and np.shares_memory(np.from_dlpack(x), array)


def test_from_array_shares_memory():
    array = np.arange(4.0)[::2]
    x = tf.experimental.from_array(array)
    array[1] = 9.0
    assert x.numpy().tolist() == [0.0, 9.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 18.0]


@pytest.mark.parametrize("array", [
    np.arange(3, dtype=">f4"), np.array(["a"]), np.array([None]), [1.0], 3.0])
def test_from_array_refuses(array):
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError)):
        tf.experimental.from_array(array)


def test_from_dlpack_refuses():
    class Elsewhere:
        def __dlpack__(self):
            raise AssertionError("not to be asked")

        def __dlpack_device__(self):
            return 8, 0

    with pytest.raises(tf.errors.InvalidArgumentError, match="__dlpack__"):
        tf.experimental.from_dlpack([1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="device kind 8"):
        tf.experimental.from_dlpack(Elsewhere())


def test_leaving_through_dlpack_is_seen_by_explain():
    with tf.device("CPU:0"):
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.constant(np.from_dlpack(x * 2.0)))
    found = tape.explain(y, x, show=False)
    assert found.cause == "LEFT_TO_HOST" and "DLPack" in found.text


def test_a_host_tensor_has_no_cuda_interface():
    with tf.device("CPU:0"):
        x = tf.constant(1.0)
    assert not hasattr(x, "__cuda_array_interface__")


# ---------------------------------------------------------------- devices


class Foreign:
    """An array of another library on a GPU: all it speaks is the protocol."""

    def __init__(self, array, dlpack):
        self._array = array
        if dlpack:
            self.__dlpack__ = array.__dlpack__

    def __getattr__(self, name):
        if name in ("__cuda_array_interface__", "__dlpack_device__"):
            return getattr(self._array, name)
        raise AttributeError(name)


@pytest.mark.parametrize("index", [0, 1])
def test_device_arrays_come_in_without_a_copy(gpus, index):
    with fake_cupy.cuda.Device(index):
        array = fake_cupy.array(np.arange(3.0))
    fake_cupy.copies.clear()
    for x in (tf.experimental.from_dlpack(array), tf.experimental.from_array(array),
              tf.experimental.from_dlpack(Foreign(array, True))):
        assert x.device == f"GPU:{index}" and _memory(x._a._host) == _memory(array._host)
    assert fake_cupy.copies == []


def test_the_cuda_array_interface_both_ways(gpus):
    array = fake_cupy.array(np.arange(3.0, dtype=np.float32))
    x = tf.experimental.from_array(Foreign(array, False))
    assert x.device == "GPU:0" and x.dtype == tf.float32
    assert _memory(x._a._host) == _memory(array._host)
    assert x.__cuda_array_interface__["data"] == (_memory(array._host), False)
    assert x.__cuda_array_interface__["shape"] == (3,)
    assert fake_cupy.asarray(x).shape == (3,)


def test_a_constant_of_a_device_array_is_a_copy_on_its_device(gpus):
    with fake_cupy.cuda.Device(1):
        array = fake_cupy.array(np.arange(3.0))
    fake_cupy.copies.clear()
    x = tf.constant(array)
    assert x.device == "GPU:1" and _memory(x._a._host) != _memory(array._host)
    assert fake_cupy.copies == []
    assert tf.convert_to_tensor(array, tf.float64).device == "GPU:1"


def test_tensors_go_out_without_a_copy(gpus):
    x = tf.constant([1.0, 2.0]).gpu(1)
    fake_cupy.copies.clear()
    assert x.__dlpack_device__() == (2, 1)
    assert _memory(fake_cupy.from_dlpack(x)._host) == _memory(x._a._host)
    assert fake_cupy.copies == []


def test_a_capsule_of_device_memory(gpus, monkeypatch):
    x = tf.constant([1.0, 2.0])

    def unsupported(array):
        raise BufferError("Unsupported device in DLTensor.")

    monkeypatch.setattr(np, "from_dlpack", unsupported)
    y = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    assert y.device == "GPU:0" and _memory(y._a._host) == _memory(x._a._host)


def test_without_a_gpu_device_arrays_are_refused_with_the_reason(gpus, monkeypatch):
    from gtape.devices import probe

    array = fake_cupy.array(np.ones(3))
    monkeypatch.setenv("GTAPE_DEVICE", "cpu")
    probe.forget()
    for function in (tf.experimental.from_dlpack, tf.experimental.from_array):
        with pytest.raises(tf.errors.InvalidArgumentError, match="GTAPE_DEVICE=cpu"):
            function(array)

"""tf.config: which devices are visible, and settings that programs make on their first lines."""

from __future__ import annotations

import pytest

import gtape as tf


def test_the_cpu_is_always_visible() -> None:
    cpus = tf.config.list_physical_devices("CPU")
    assert cpus == tf.config.get_visible_devices("CPU")
    tf.config.set_visible_devices(cpus, "CPU")
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be hidden"):
        tf.config.set_visible_devices([], "CPU")
    with pytest.raises(ValueError, match="is none of"):
        tf.config.set_visible_devices([tf.config.PhysicalDevice("/physical_device:TPU:0", "TPU")])


def test_hidden_gpus_are_not_used() -> None:
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([], "GPU")
    try:
        assert tf.config.get_visible_devices("GPU") == tf.config.list_logical_devices("GPU") == []
        assert tf.config.list_physical_devices("GPU") == gpus
        assert "CPU" in tf.constant(1.0).device
        with pytest.raises(tf.errors.InvalidArgumentError, match="no usable device GPU:0"):
            tf.device("GPU:0")
    finally:
        tf.config.set_visible_devices(gpus, "GPU")
    assert tf.config.get_visible_devices("GPU") == gpus


def test_memory_grows() -> None:
    for device in tf.config.list_physical_devices():
        tf.config.experimental.set_memory_growth(device, True)
        assert tf.config.experimental.get_memory_growth(device)
        with pytest.raises(tf.errors.UnimplementedError, match="as it is needed"):
            tf.config.experimental.set_memory_growth(device, False)
    tf.config.set_soft_device_placement(True)
    assert tf.config.get_soft_device_placement() is False


def test_a_device_is_one_logical_device() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one])
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 2 configurations"):
        tf.config.set_logical_device_configuration(cpu, [one, one])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no memory limit"):
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration(memory_limit=100)])

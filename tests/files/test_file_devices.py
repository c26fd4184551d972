"""Files and summaries of tensors on any device."""

from __future__ import annotations

import numpy as np

import gtape as tf


def test_what_is_read_comes_to_the_device_at_hand(device, tmp_path):
    x = tf.constant([1.0, 2.0])
    tf.io.write_file(tmp_path / "f", tf.io.serialize_tensor(x * 2.0))
    back = tf.io.parse_tensor(tf.io.read_file(tmp_path / "f"), tf.float32)
    assert back.device == x.device and back.numpy().tolist() == [2.0, 4.0]
    pixels = tf.cast(tf.fill([2, 3, 1], 7), tf.uint8)
    assert tf.io.encode_png(pixels).numpy().startswith(b"\x89PNG")


def test_a_traced_function_reads_writes_and_sums_up_on_any_device(device, tmp_path):
    writer = tf.summary.create_file_writer(tmp_path / "log")

    @tf.function
    def step(path, x):
        tf.io.write_file(path, tf.io.serialize_tensor(x + 1.0))
        numbers = tf.io.decode_raw(tf.io.read_file(path), tf.uint8, fixed_length=4)
        tf.summary.scalar("x", tf.reduce_sum(x), step=0)
        return tf.cast(numbers, tf.float32) + x[0]

    with writer.as_default():
        x = tf.constant([1.0, 2.0])
        found = step(tf.constant(str(tmp_path / "f")), x)
        assert found.device == x.device
        np.testing.assert_array_equal(found.numpy(), np.float32([8, 1, 0x12, 4]) + 1)
    writer.close()

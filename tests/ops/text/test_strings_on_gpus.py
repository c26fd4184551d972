"""Strings stay on the host; numbers that come of them go where new tensors go."""

from __future__ import annotations

from typing import Any

import gtape as tf


def test_numbers_of_strings_are_made_on_the_current_device(gpus: Any) -> None:
    words = tf.constant(["a", "bc"])
    assert words.device == "CPU:0" and tf.strings.lower(words).device == "CPU:0"
    for function in (tf.strings.length, lambda x: tf.strings.to_hash_bucket_fast(x, 10)):
        assert function(words).device == "GPU:0"
        with tf.device("CPU:0"):
            assert function(words).device == "CPU:0"
        with tf.device("GPU:1"):
            assert function(words).device == "GPU:1"
    assert tf.strings.length(words).numpy().tolist() == [1, 2]


def test_numbers_on_a_gpu_become_strings(gpus: Any) -> None:
    x = tf.constant([1, 20])
    assert x.device == "GPU:0" and tf.strings.as_string(x).numpy().tolist() == [b"1", b"20"]


def test_what_is_looked_up_by_numbers_is_where_they_are(gpus: Any) -> None:
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([5, 7], [0.5, 0.7]), 0.0)
    keys = tf.constant([7, 8])
    assert table.lookup(keys).device == "GPU:0" and table.lookup(keys.cpu()).device == "CPU:0"
    by_name = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [3]), 0)
    rows = tf.gather(tf.constant([[1.0], [2.0], [3.0], [4.0]]), by_name.lookup(tf.constant(["a"])))
    assert rows.device == "GPU:0" and rows.numpy().tolist() == [[4.0]]


def test_a_traced_function_of_strings_on_a_gpu(gpus: Any) -> None:
    weights = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def total(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.gather(weights, tf.strings.length(x)))

    assert total(tf.constant(["", "ab"])).numpy() == 4.0

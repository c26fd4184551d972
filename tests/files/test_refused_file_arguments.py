"""Arguments of tf.io and tf.audio that make no sense are refused at once, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf

_SOUND = tf.audio.encode_wav(tf.ones([4, 1]), 8000)
_PIXELS = tf.zeros([2, 2, 3], tf.uint8)


@pytest.mark.parametrize("call, words", [
    (lambda: tf.audio.decode_wav(_SOUND, desired_channels=[1]), "desired_channels must be an int"),
    (lambda: tf.audio.decode_wav(_SOUND, desired_samples=None), "desired_samples must be an int"),
    (lambda: tf.audio.decode_wav(_SOUND, 2**63), "fewer than 2\\*\\*63 elements"),
    (lambda: tf.audio.decode_wav([_SOUND, _SOUND]), "must be scalar"),
    (lambda: tf.audio.encode_wav(tf.ones([4, 2]), 2**30), "fewer than 2\\^32"),
    (lambda: tf.audio.encode_wav(tf.ones([4, 1]), 0.5), "must be an integer scalar"),
    (lambda: tf.io.TFRecordOptions(["GZIP"]), "a compression is"),
    (lambda: tf.io.TFRecordOptions("GZIP", compression_level="9"), "compression_level must be"),
    (lambda: tf.io.decode_compressed(b"", ["GZIP"]), "a compression is"),
    (lambda: tf.io.decode_csv(["1"], 0.0), "record_defaults must be a list"),
    (lambda: tf.io.decode_csv(["1"], [0.0], field_delim=[44]), "field_delim must be a string"),
    (lambda: tf.io.decode_csv(["1"], [0.0], na_value=1), "na_value must be a string"),
    (lambda: tf.io.decode_csv(["1"], [0.0], select_cols=["a"]), "select_cols must be an int"),
    (lambda: tf.io.decode_raw(b"abcd", tf.uint8, fixed_length="4"), "fixed_length must be an int"),
    (lambda: tf.io.encode_jpeg(_PIXELS, format=["rgb"]), "the format"),
    (lambda: tf.io.encode_jpeg(_PIXELS, x_density=2**16), "x_density must be fewer"),
    (lambda: tf.io.encode_jpeg(_PIXELS, xmp_metadata=1), "xmp_metadata must be a string"),
    (lambda: tf.io.gfile.GFile("x", ["r"]), "mode is not"),
    (lambda: tf.io.parse_tensor([1.0], tf.float32), "parse_tensor takes strings")])
def test_odd_arguments_are_refused_in_words(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_strings_are_cut_and_filled_to_a_length() -> None:
    found = tf.io.decode_raw(["abc", "", "a"], tf.uint8, fixed_length=2)
    assert found.numpy().tolist() == [[97, 98], [0, 0], [97, 0]]
    assert tf.io.decode_raw(tf.zeros([0], tf.string), tf.int16).shape == (0, 0)

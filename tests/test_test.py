"""tf.test: what a program asks about the machine."""

from __future__ import annotations

import pytest

import gtape as tf


def test_it_says_what_the_configuration_says() -> None:
    found = bool(tf.config.list_physical_devices("GPU"))
    assert tf.test.is_gpu_available() is found
    assert tf.test.gpu_device_name() == ("/device:GPU:0" if found else "")
    assert tf.test.is_built_with_gpu_support() is tf.test.is_built_with_cuda()


def test_other_names_are_absent() -> None:
    with pytest.raises(AttributeError, match="pytest"):
        tf.test.TestCase

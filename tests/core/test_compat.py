"""tf.compat and tf.types: text and bytes, and classes for isinstance."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf


@pytest.mark.parametrize("found, wanted", [
    (tf.compat.as_bytes("é"), b"\xc3\xa9"), (tf.compat.as_bytes(bytearray(b"x")), b"x"),
    (tf.compat.as_text(b"\xc3\xa9"), "é"), (tf.compat.as_text(b"\xe9", "latin-1"), "é"),
    (tf.compat.as_text("a"), "a"), (tf.compat.as_str(b"a"), "a"), (tf.compat.as_str_any(5), "5"),
    (tf.compat.as_str_any(b"a"), "a"), (tf.compat.path_to_str(pathlib.PurePosixPath("/a")), "/a"),
    (tf.compat.path_to_str("b"), "b")])
def test_text_and_bytes(found: Any, wanted: Any) -> None:
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize("call, error", [
    (lambda: tf.compat.as_bytes(1), TypeError), (lambda: tf.compat.as_text(None), TypeError),
    (lambda: tf.compat.as_text(b"\xff"), UnicodeDecodeError),
    (lambda: tf.compat.v1, AttributeError)])
def test_what_is_no_text(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_classes_of_numbers_and_text() -> None:
    assert isinstance(np.int8(1), tf.compat.integral_types)
    assert isinstance(np.float32(1), tf.compat.real_types)
    assert isinstance(1j, tf.compat.complex_types) and not isinstance(1j, tf.compat.real_types)
    assert isinstance("a", tf.compat.bytes_or_text_types)


def test_functions_are_told_apart() -> None:
    types = tf.types.experimental
    function = tf.function(lambda x: x)
    concrete = function.get_concrete_function(tf.TensorSpec([], tf.float32))
    assert isinstance(function, (types.GenericFunction, types.Callable))
    assert isinstance(function, types.PolymorphicFunction)
    assert isinstance(concrete, types.ConcreteFunction) and isinstance(concrete, types.Callable)
    assert not isinstance(len, types.Callable)
    assert not isinstance(tf.constant(1), types.distributed.PerReplica)


def test_what_is_like_a_tensor() -> None:
    assert isinstance(tf.constant(1), tf.types.experimental.TensorLike)
    assert isinstance(2.5, tf.types.experimental.TensorLike)
    assert not isinstance({}, tf.types.experimental.TensorLike)

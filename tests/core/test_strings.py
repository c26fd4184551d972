"""Strings are bytes of any content: NULs at the end stay however they are made and moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_ENDED = b"a\0"


@pytest.mark.parametrize("value", [
    b"xx\0", "xx\0", np.bytes_(b"xx\0"), np.str_("xx\0"), np.array(b"xx\0", object)])
def test_one_string_keeps_its_nul(value: Any) -> None:
    for made in (tf.constant(value), tf.convert_to_tensor(value), tf.Variable(value)):
        assert made.numpy() == b"xx\0" and made.shape == []


@pytest.mark.parametrize("value, wanted", [
    ([b"a\0", "b"], [b"a\0", b"b"]), ((["c\0\0"], ["\0"]), [[b"c\0\0"], [b"\0"]]),
    ([np.bytes_(b"a\0")], [b"a\0"]),
    (["é\0"], ["é\0".encode()]), (np.array([b"a\0", "b"], object), [b"a\0", b"b"]), ([""], [b""])])
def test_lists_of_strings_keep_their_nuls(value: Any, wanted: Any) -> None:
    assert tf.constant(value).numpy().tolist() == wanted


def test_strings_that_differ_in_a_nul_differ() -> None:
    assert not bool(tf.constant(_ENDED) == tf.constant(b"a"))
    assert (tf.constant(["a\0", "a"]) == _ENDED).numpy().tolist() == [True, False]
    assert (tf.constant(["a\0", "a"]) != "a").numpy().tolist() == [True, False]
    assert tf.unique(["a\0", "a", "a\0"]).idx.numpy().tolist() == [0, 1, 0]


def test_the_nul_is_printed() -> None:
    assert str(tf.constant(_ENDED)) == r"tf.Tensor(b'a\x00', shape=(), dtype=string)"
    assert r"array([b'a\x00'], dtype=object)" in repr(tf.constant([_ENDED]))


_TWO = ["b", "c\0"]


@pytest.mark.parametrize("function, wanted", [
    (lambda x: tf.stack([x[0], _ENDED]), [b"b", _ENDED]),
    (lambda x: tf.concat([x, [_ENDED]], 0), [b"b", b"c\0", _ENDED]),
    (lambda x: tf.where([True, False], _ENDED, x), [_ENDED, b"c\0"]),
    (lambda x: tf.gather(x, [1]), [b"c\0"]),
    (lambda x: tf.pad(x, [[0, 1]], constant_values=_ENDED), [b"b", b"c\0", _ENDED]),
    (lambda x: tf.pad(x[:1], [[0, 1]], constant_values=tf.constant(_ENDED)), [b"b", _ENDED]),
    (lambda x: tf.linalg.diag(x, padding_value=_ENDED), [[b"b", _ENDED], [_ENDED, b"c\0"]]),
    (lambda x: tf.linalg.diag_part([x], k=(0, 1), padding_value=_ENDED), [[b"c\0"], [b"b"]]),
    (lambda x: tf.one_hot([0], 2, _ENDED, b"", dtype=tf.string), [[_ENDED, b""]]),
    (lambda x: tf.fill([2], _ENDED), [_ENDED, _ENDED]),
    (lambda x: tf.constant(_ENDED, shape=[1, 2]), [[_ENDED, _ENDED]]),
    (lambda x: tf.tensor_scatter_nd_update(x, [[0]], [_ENDED]), [_ENDED, b"c\0"])])
def test_operations_keep_nuls(function: Any, wanted: Any) -> None:
    x = tf.constant(_TWO)
    assert function(x).numpy().tolist() == wanted
    assert tf.function(function)(x).numpy().tolist() == wanted


def test_a_string_assigned_to_a_piece_of_a_variable() -> None:
    v = tf.Variable(_TWO)
    v[0].assign(_ENDED)
    assert v.numpy().tolist() == [_ENDED, b"c\0"] and type(v.numpy()[0]) is bytes
    v.assign([b"\0", _ENDED])
    assert v.numpy().tolist() == [b"\0", _ENDED]

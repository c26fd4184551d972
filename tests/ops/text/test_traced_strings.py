"""String functions inside tf.function: steps that run at every call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf

S = tf.strings


@pytest.mark.parametrize("function", [
    S.length, S.lower, S.upper, S.strip, S.reduce_join, lambda x: S.join([x, "-", x]),
    lambda x: S.substr(x, 0, 1), lambda x: S.regex_replace(x, "[a-c]", "<\\0>"),
    lambda x: S.regex_full_match(x, "a.*"), lambda x: S.to_hash_bucket_fast(x, 1000) * 2,
    lambda x: S.to_hash_bucket_strong(x, 1000, [1, 2]), lambda x: S.format("{}!", x),
    lambda x: S.as_string(S.length(x)), lambda x: S.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
    lambda x: x + "tail", lambda x: tf.fingerprint(x)])
def test_traced_as_eager(function: Callable[[Any], Any]) -> None:
    traced = tf.function(function, reduce_retracing=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for words in (["ab", "Bc\0"], ["x"], ["q", "", "abc"]):
            x = tf.constant(words)
            assert repr(traced(x)) == repr(function(x))


def test_a_step_refuses_at_every_call() -> None:
    traced = tf.function(lambda x: tf.size(S.to_number(x)))
    assert traced(tf.constant(["1", "2"])).numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        traced(tf.constant(["1", "x"]))


def test_lengths_that_depend_on_values_run_eagerly() -> None:
    traced = tf.function(lambda x: S.split(x))
    with pytest.warns(tf.errors.EagerFunctionWarning, match="tf.strings.split gives depends on"):
        assert traced(tf.constant("a b")).numpy().tolist() == [b"a", b"b"]


def test_patterns_and_rewrites_may_be_tensors() -> None:
    traced = tf.function(S.regex_replace)
    found = traced(tf.constant(["ab", "b"]), tf.constant("b"), tf.constant("c"))
    assert found.numpy().tolist() == [b"ac", b"c"]

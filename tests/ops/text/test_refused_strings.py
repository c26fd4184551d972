"""Arguments that make no sense are refused at once, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf

S = tf.strings


@pytest.mark.parametrize("call", [
    lambda: S.unsorted_segment_join(["a"], [0], 2**70),
    lambda: S.ngrams(["a"], 2**70, pad_values="P"),
    lambda: S.unsorted_segment_join(["a"], ["b"], 1), lambda: S.join(["a", "b"], ["-", "+"]),
    lambda: S.to_hash_bucket_fast(["a"], 2**70), lambda: S.unsorted_segment_join(["a"], [2], 2)])
def test_sizes_and_dtypes_that_cannot_be(call: Callable[[], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()


def test_a_template_is_a_string() -> None:
    with pytest.raises(ValueError, match="template"):
        S.format(tf.constant(1.0), 1)
    with pytest.raises(TypeError, match="must be a list"):
        S.join(1)


def test_numbers_of_splits_of_any_size() -> None:
    assert S.split("a b c", maxsplit=2**70).numpy().tolist() == [b"a", b"b", b"c"]
    assert S.split("a b", maxsplit=-(2**70)).numpy().tolist() == [b"a", b"b"]


def test_what_joins_n_grams_is_a_string() -> None:
    with pytest.raises(TypeError, match="separator must be a string"):
        S.ngrams(["a", "b"], 2, separator=1)
    assert S.ngrams(["a", "b"], 2, separator=tf.constant("-")).numpy().tolist() == [b"a-b"]

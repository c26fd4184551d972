"""String functions of RaggedTensors: what TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf
from tests.ops.text.told import Given, gives

S = tf.strings
_ragged = tf.ragged.constant
_WIDE = _ragged([["A b", "c"], [], ["De"]])
_DEEP = _ragged([[["a", "b"], []], [["c"]]])

_GIVEN: Given = [
    (lambda: S.length(_WIDE), [[3, 1], [], [2]]),
    (lambda: S.lower(_WIDE), [[b"a b", b"c"], [], [b"de"]]),
    (lambda: S.upper(input=_WIDE), [[b"A B", b"C"], [], [b"DE"]]),
    (lambda: S.strip(_DEEP), [[[b"a", b"b"], []], [[b"c"]]]),
    (lambda: S.join([_WIDE, "-", _WIDE]), [[b"A b-A b", b"c-c"], [], [b"De-De"]]),
    (lambda: S.join([_WIDE, _WIDE], separator="+"), [[b"A b+A b", b"c+c"], [], [b"De+De"]]),
    (lambda: S.reduce_join(_WIDE, axis=-1), [b"A bc", b"", b"De"]),
    (lambda: S.reduce_join(_WIDE, axis=1, separator="."), [b"A b.c", b"", b"De"]),
    (lambda: S.reduce_join(_DEEP, axis=2), [[b"ab", b""], [b"c"]]),
    (lambda: S.reduce_join(_DEEP, axis=-1), [[b"ab", b""], [b"c"]]),
    (lambda: S.split(_WIDE), [[[b"A", b"b"], [b"c"]], [], [[b"De"]]]),
    (lambda: S.split(_DEEP), [[[[b"a"], [b"b"]], []], [[[b"c"]]]]),
    (lambda: S.bytes_split(_WIDE), [[[b"A", b" ", b"b"], [b"c"]], [], [[b"D", b"e"]]]),
    (lambda: S.unicode_split(_WIDE, "UTF-8"), [[[b"A", b" ", b"b"], [b"c"]], [], [[b"D", b"e"]]]),
    (lambda: S.regex_replace(_WIDE, "[a-z]", "_"), [[b"A _", b"_"], [], [b"D_"]]),
    (lambda: S.regex_full_match(_WIDE, "[a-z]"), [[False, True], [], [False]]),
    (lambda: S.substr(_WIDE, 0, 1), [[b"A", b"c"], [], [b"D"]]),
    (lambda: S.to_number(_ragged([["1"], ["2", "3"]])), [[1.0], [2.0, 3.0]]),
    (lambda: S.as_string(_ragged([[1], [2, 3]])), [[b"1"], [b"2", b"3"]]),
    (lambda: S.to_hash_bucket_fast(_WIDE, 100), [[72, 72], [], [50]]),
    (lambda: S.to_hash_bucket_strong(_WIDE, 100, [1, 2]), [[66, 49], [], [96]]),
    (lambda: S.to_hash_bucket(_WIDE, 100), [[25, 97], [], [33]]),
    (lambda: S.ngrams(_DEEP, 2), [[[b"a b"], []], [[]]]),
    (lambda: S.ngrams(_DEEP, 1), [[[b"a", b"b"], []], [[b"c"]]]),
    (lambda: S.unicode_encode(_ragged([[[104], [105, 106]], []]), "UTF-8"), [[b"h", b"ij"], []]),
    (
        lambda: S.unicode_transcode(_WIDE, "UTF-8", "UTF-16-BE"),
        [[b"\x00A\x00 \x00b", b"\x00c"], [], [b"\x00D\x00e"]],
    ),
    (lambda: _WIDE + "z", [[b"A bz", b"cz"], [], [b"Dez"]]),
    (lambda: _WIDE == _WIDE, [[True, True], [], [True]]),
    (lambda: S.reduce_join(_WIDE), b"A bcDe"),
]


test_what_tensorflow_gives = gives(_GIVEN)


@pytest.mark.parametrize(
    "call",
    [
        lambda: S.join([_WIDE, ["a", "b", "c"]]),
        lambda: S.join([_WIDE, _ragged([["a"], [], ["b"]])]),
        lambda: S.reduce_join(_WIDE, axis=0),
        lambda: S.reduce_join(_WIDE, axis=-1, keepdims=True),
    ],
)
def test_rows_that_do_not_fit(call: Callable[[], Any]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()


def test_shapes_of_what_is_split() -> None:
    assert S.split(["a b", ""]).shape.as_list() == [2, None]
    assert S.split([["a b", "c"]]).shape.as_list() == [1, 2, None]
    assert S.split(_WIDE).shape.as_list() == [3, None, None]
    assert S.split(tf.zeros([0], tf.string)).shape.as_list() == [0, None]


def test_tables_look_up_ragged_keys() -> None:
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["c", "De"], [1, 2]), -1)
    assert table.lookup(_WIDE).to_list() == [[-1, 1], [], [2]]
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    assert counts.lookup(_WIDE).to_list() == [[0, 0], [], [0]]


def test_words_to_padded_ids() -> None:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["the", "cat"], tf.constant([2, 3], tf.int64)), 1
    )
    words = S.split(S.regex_replace(S.lower(["The cat!", "a cat, the dog"]), r"[!,]", ""))
    assert table.lookup(words).to_tensor().numpy().tolist() == [[2, 3, 0, 0], [1, 3, 2, 1]]

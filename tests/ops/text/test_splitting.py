"""Words, bytes and n-grams: what TensorFlow gives."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

S = tf.strings

_GIVEN: Given = [
    (lambda: S.split("a b  c "), [b"a", b"b", b"c"]),
    (lambda: S.split(["a b", "", "c"]), [[b"a", b"b"], [], [b"c"]]),
    (
        lambda: S.split([["a b", "c"], ["d", "e f"]]),
        [[[b"a", b"b"], [b"c"]], [[b"d"], [b"e", b"f"]]],
    ),
    (lambda: S.split("a,b,,c", sep=","), [b"a", b"b", b"", b"c"]),
    (lambda: S.split("a,b,,c", sep=",", maxsplit=1), [b"a", b"b,,c"]),
    (lambda: S.split("a b c", maxsplit=1), [b"a", b"b c"]),
    (lambda: S.split("a b c", maxsplit=0), [b"a b c"]),
    (lambda: S.split(",a", ","), [b"", b"a"]),
    (lambda: S.split("", ","), [b""]),
    (lambda: S.split("abc", ""), [b"abc"]),
    (lambda: S.split("a<>b<>", sep="<>"), [b"a", b"b", b""]),
    (lambda: S.split(tf.ragged.constant([["a b"], []])), [[[b"a", b"b"]], []]),
    (lambda: S.split(" a  b c ", maxsplit=1), [b"a", b"b c "]),
    (lambda: S.split("a b c", maxsplit=-2), [b"a", b"b", b"c"]),
    (lambda: S.split([], ","), []),
    (lambda: S.split("a\u00a0b"), [b"a\xc2\xa0b"]),
    (lambda: S.bytes_split("héy"), [b"h", b"\xc3", b"\xa9", b"y"]),
    (lambda: S.bytes_split(["ab", ""]), [[b"a", b"b"], []]),
    (lambda: S.bytes_split([["ab"], ["c"]]), [[[b"a", b"b"]], [[b"c"]]]),
    (lambda: S.ngrams(["a", "b", "c"], 2), [b"a b", b"b c"]),
    (lambda: S.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2), [[b"a b", b"b c"], [b"d e", b"e f"]]),
    (lambda: S.ngrams(tf.ragged.constant([["a", "b"], ["c"], []]), 2), [[b"a b"], [], []]),
    (
        lambda: S.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), (1, 2)),
        [[b"a", b"b", b"c", b"a b", b"b c"], [b"d"]],
    ),
    (
        lambda: S.ngrams(tf.ragged.constant([["a", "b"], ["c"]]), 3, preserve_short_sequences=True),
        [[b"a b"], [b"c"]],
    ),
    (lambda: S.ngrams(["a", "b"], 3, pad_values="P"), [b"P P a", b"P a b", b"a b P", b"b P P"]),
    (lambda: S.ngrams(["a", "b"], 3, pad_values=("L", "R"), padding_width=1), [b"L a b", b"a b R"]),
    (
        lambda: S.ngrams(["a", "b"], (2, 3), separator="_", pad_values="P"),
        [b"P_a", b"a_b", b"b_P", b"P_P_a", b"P_a_b", b"a_b_P", b"b_P_P"],
    ),
    (lambda: S.ngrams(["a", "b"], 3), []),
    (lambda: S.ngrams(["a", "b"], [3, 1]), [b"a", b"b"]),
    (lambda: S.ngrams([["a"], ["b"]], 2), [[], []]),
    (lambda: S.ngrams(["a", "b"], (2,), preserve_short_sequences=True), [b"a b"]),
    (lambda: S.ngrams(["a"], (2, 3), preserve_short_sequences=True), [b"a"]),
    (
        lambda: S.ngrams(tf.ragged.constant([[["a", "b"], ["c", "d", "e"]]]), 2),
        [[[b"a b"], [b"c d", b"d e"]]],
    ),
    (lambda: S.ngrams(["a"], 3, pad_values="P", padding_width=5), [b"P P a", b"P a P", b"a P P"]),
    (lambda: S.ngrams(tf.zeros([2, 0], tf.string), 1), [[], []]),
    (lambda: S.ngrams(["a"], (1, 2), pad_values="P"), [b"a", b"P a", b"a P"]),
    (lambda: S.ngrams([[["a", "b", "c"]]], 2), [[[b"a b", b"b c"]]]),
    (
        lambda: S.ngrams(
            ["a"], (2, 3), preserve_short_sequences=True, pad_values="P", padding_width=1
        ),
        [b"P a", b"a P", b"P a P"],
    ),
    (lambda: S.ngrams(["a", "b"], (5, 4), preserve_short_sequences=True), [b"a b"]),
]

_REFUSED: Refused = [
    (lambda: S.split(1), tf.errors.InvalidArgumentError),
    (lambda: S.split(["a,b"], sep=[","]), tf.errors.InvalidArgumentError),
    (lambda: S.ngrams(["a", "b"], 0), ValueError),
    (lambda: S.ngrams("a", 1), ValueError),
    (lambda: S.ngrams([1, 2], 1), tf.errors.InvalidArgumentError),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)

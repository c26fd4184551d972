"""Length, case, white space, parts and joins of strings: what TensorFlow gives."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

S = tf.strings

_GIVEN: Given = [
    (lambda: S.length(["héllo", "", b"\xff\xfe"]), [6, 0, 2]),
    (lambda: S.length("héllo", unit="UTF8_CHAR"), 5),
    (lambda: S.length(b"\xff\x80a", unit="UTF8_CHAR"), 2),
    (lambda: S.lower(["ABCÉ"]), [b"abc\xc3\x89"]),
    (lambda: S.lower(["ABCÉ"], encoding="utf-8"), [b"abc\xc3\xa9"]),
    (lambda: S.upper(["straße é"], encoding="utf-8"), [b"STRASSE \xc3\x89"]),
    (lambda: S.upper(["straße é"]), [b"STRA\xc3\x9fE \xc3\xa9"]),
    (lambda: S.lower(b"\xffA", encoding="utf-8"), b"\xef\xbf\xbda"),
    (lambda: S.strip([" \t\n a b \x0b\x0c\r", "\u00a0a"]), [b"a b", b"\xc2\xa0a"]),
    (lambda: S.join(["a", ["b", "c"]]), [b"ab", b"ac"]),
    (lambda: S.join([["a", "b"], ["c", "d"]], separator="-"), [b"a-c", b"b-d"]),
    (lambda: S.join([]), b""),
    (lambda: S.join(["a"]), b"a"),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]]), b"abcd"),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=0), [b"ac", b"bd"]),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=[0, 1], separator="."), b"a.c.b.d"),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=[1, 0], separator="."), b"a.b.c.d"),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=[]), [[b"a", b"b"], [b"c", b"d"]]),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=-1, keepdims=True), [[b"ab"], [b"cd"]]),
    (lambda: S.reduce_join("a"), b"a"),
    (lambda: S.reduce_join(tf.zeros([0, 2], tf.string), axis=0), [b"", b""]),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], keepdims=True), [[b"abcd"]]),
    (lambda: S.substr("hello", 1, 3), b"ell"),
    (lambda: S.substr("hello", -3, 2), b"ll"),
    (lambda: S.substr("hello", 5, 2), b""),
    (lambda: S.substr(["hello", "ab"], [1, 0], [2, 1]), [b"el", b"a"]),
    (lambda: S.substr("hello", 1, -1), b"ello"),
    (lambda: S.substr(["a", "b"], [[0], [0]], [[1], [1]]), [[b"a", b"b"], [b"a", b"b"]]),
    (lambda: S.substr("héllo", 1, 2, unit="UTF8_CHAR"), b"\xc3\xa9l"),
    (lambda: S.substr("héllo", -4, 2, unit="UTF8_CHAR"), b"\xc3\xa9l"),
    (lambda: S.substr(["hello", "abc"], 1, 2), [b"el", b"bc"]),
    (lambda: S.substr([["hello", "abc"]], [1, 2], [1, 1]), [[b"e", b"c"]]),
    (lambda: S.substr("hello", [1, 2], [2, 2]), [b"el", b"ll"]),
    (lambda: S.substr(["hello"], [1, 2], [2, 2]), [b"el", b"ll"]),
    (lambda: S.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, ":"), [b"a:c", b"b"]),
]

_REFUSED: Refused = [
    (lambda: S.length("a", unit="X"), tf.errors.InvalidArgumentError),
    (lambda: S.length(1), tf.errors.InvalidArgumentError),
    (lambda: S.lower("A", encoding="latin1"), tf.errors.InvalidArgumentError),
    (lambda: S.lower("A", encoding="UTF-8"), tf.errors.InvalidArgumentError),
    (lambda: S.join([["a"], ["b", "c"]]), tf.errors.InvalidArgumentError),
    (lambda: S.join([["a", "b"], [["c", "d"]]]), tf.errors.InvalidArgumentError),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=2), tf.errors.InvalidArgumentError),
    (lambda: S.reduce_join([["a", "b"], ["c", "d"]], axis=[0, 0]), tf.errors.InvalidArgumentError),
    (lambda: S.substr("hello", 6, 1), tf.errors.InvalidArgumentError),
    (lambda: S.substr("hello", -6, 1), tf.errors.InvalidArgumentError),
    (lambda: S.substr("héllo", 6, 2, unit="UTF8_CHAR"), tf.errors.InvalidArgumentError),
    (lambda: S.substr("hello", 1.0, 2), tf.errors.InvalidArgumentError),
    (lambda: S.substr(["a", "b", "c"], [0, 0], [1, 1]), tf.errors.InvalidArgumentError),
    (
        lambda: S.unsorted_segment_join(["a", "b", "c"], [0, -1, 0], 1),
        tf.errors.InvalidArgumentError,
    ),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)

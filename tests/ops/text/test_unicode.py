"""Characters and code points: what TensorFlow gives."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

S = tf.strings

_GIVEN: Given = [
    (lambda: S.unicode_split("héy", "UTF-8"), [b"h", b"\xc3\xa9", b"y"]),
    (lambda: S.unicode_split(["héy", ""], "UTF-8"), [[b"h", b"\xc3\xa9", b"y"], []]),
    (lambda: S.unicode_split(b"a\xffb", "UTF-8"), [b"a", b"\xef\xbf\xbd", b"b"]),
    (lambda: S.unicode_split(b"a\xffb", "UTF-8", errors="ignore"), [b"a", b"b"]),
    (lambda: S.unicode_split(b"a\xe2\x82b", "UTF-8"), [b"a", b"\xef\xbf\xbd", b"b"]),
    (
        lambda: S.unicode_split(b"a\xffb", "UTF-8", errors="replace", replacement_char=63),
        [b"a", b"?", b"b"],
    ),
    (lambda: S.unicode_decode("héy", "UTF-8"), [104, 233, 121]),
    (lambda: S.unicode_decode(["héy", ""], "UTF-8"), [[104, 233, 121], []]),
    (lambda: S.unicode_decode("a\nb", "UTF-8", replace_control_characters=True), [97, 65533, 98]),
    (lambda: S.unicode_decode("héy".encode("utf-16-be"), "UTF-16-BE"), [104, 233, 121]),
    (lambda: S.unicode_decode_with_offsets("héy", "UTF-8"), [[104, 233, 121], [0, 1, 3]]),
    (
        lambda: S.unicode_split_with_offsets(["héy", "a"], "UTF-8"),
        [[[b"h", b"\xc3\xa9", b"y"], [b"a"]], [[0, 1, 3], [0]]],
    ),
    (
        lambda: S.unicode_decode("a\x7fb\x80", "UTF-8", replace_control_characters=True),
        [97, 127, 98, 128],
    ),
    (lambda: S.unicode_decode("héy".encode("utf-16-le"), "UTF-16-LE"), [104, 233, 121]),
    (lambda: S.unicode_decode("é".encode("latin1"), "ISO-8859-1"), [233]),
    (
        lambda: S.unicode_decode(
            ["a\nb"], "UTF-8", replace_control_characters=True, errors="ignore"
        ),
        [[97, 98]],
    ),
    (lambda: S.unicode_encode([104, 233], "UTF-8"), b"h\xc3\xa9"),
    (
        lambda: S.unicode_encode(tf.ragged.constant([[104, 233], [97]]), "UTF-8"),
        [b"h\xc3\xa9", b"a"],
    ),
    (lambda: S.unicode_encode([[104, 233], [97, 98]], "UTF-8"), [b"h\xc3\xa9", b"ab"]),
    (lambda: S.unicode_encode([104, 233], "UTF-16-BE"), b"\x00h\x00\xe9"),
    (lambda: S.unicode_encode([0xD800, 65], "UTF-8"), b"\xef\xbf\xbdA"),
    (lambda: S.unicode_encode([0xD800, 65], "UTF-8", errors="ignore"), b"A"),
    (lambda: S.unicode_encode([1114112], "UTF-8"), b"\xef\xbf\xbd"),
    (lambda: S.unicode_encode([65], "UTF-32-BE"), b"\x00\x00\x00A"),
    (lambda: S.unicode_encode([0xD800, 65], "UTF-8", replacement_char=63), b"?A"),
    (lambda: S.unicode_transcode("héy", "UTF-8", "UTF-16-BE"), b"\x00h\x00\xe9\x00y"),
    (lambda: S.unicode_transcode(b"a\xffb", "UTF-8", "UTF-8"), b"a\xef\xbf\xbdb"),
    (lambda: S.unicode_transcode(b"a\xffb\n", "UTF-8", "UTF-8", errors="ignore"), b"ab\n"),
    (
        lambda: S.unicode_transcode(
            "a\nb", "UTF-8", "UTF-8", replace_control_characters=True, replacement_char=32
        ),
        b"a b",
    ),
]

_REFUSED: Refused = [
    (lambda: S.unicode_split(b"a\xffb", "UTF-8", errors="strict"), tf.errors.InvalidArgumentError),
    (lambda: S.unicode_split("x", "nope"), tf.errors.InvalidArgumentError),
    (lambda: S.unicode_split(b"a\xffb", "UTF-8", errors="foo"), tf.errors.InvalidArgumentError),
    (
        lambda: S.unicode_encode([0xD800, 65], "UTF-8", errors="strict"),
        tf.errors.InvalidArgumentError,
    ),
    (lambda: S.unicode_encode([65], "UTF-16-LE"), tf.errors.InvalidArgumentError),
    (
        lambda: S.unicode_transcode(b"a\xff", "UTF-8", "UTF-8", errors="strict"),
        tf.errors.InvalidArgumentError,
    ),
    (lambda: S.unicode_transcode("a", "UTF-8", "latin1"), tf.errors.InvalidArgumentError),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)

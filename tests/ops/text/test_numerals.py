"""Numbers as strings and strings as numbers: what TensorFlow gives."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

S = tf.strings

_GIVEN: Given = [
    (
        lambda: S.to_number(
            ["1.5", " -2e3 ", "inf", "-Infinity", "NaN", "1e400", ".5", "5.", "+3"]
        ),
        [1.5, -2000.0, float("inf"), float("-inf"), float("nan"), float("inf"), 0.5, 5.0, 3.0],
    ),
    (lambda: S.to_number("0x10"), 16.0),
    (lambda: S.to_number("12", tf.int32), 12),
    (lambda: S.to_number(" 12 ", tf.int64), 12),
    (lambda: S.to_number("5", tf.uint64), 5),
    (lambda: S.to_number("1.5", tf.float64), 1.5),
    (lambda: S.to_number("+5", tf.int32), 5),
    (lambda: S.to_number("inf", tf.float64), float("inf")),
    (lambda: S.as_string([1, -2]), [b"1", b"-2"]),
    (lambda: S.as_string(1.5), b"1.500000"),
    (lambda: S.as_string([0.1, 1e10, 1e-10]), [b"0.100000", b"10000000000.000000", b"0.000000"]),
    (lambda: S.as_string(1.5, precision=2), b"1.50"),
    (lambda: S.as_string(1.5, scientific=True), b"1.500000e+00"),
    (lambda: S.as_string(1e-10, shortest=True), b"1e-10"),
    (lambda: S.as_string(123456789.0, shortest=True), b"1.23457e+08"),
    (lambda: S.as_string(5, width=4), b"   5"),
    (lambda: S.as_string(5, width=4, fill="0"), b"0005"),
    (lambda: S.as_string(5, width=4, fill="-"), b"5   "),
    (lambda: S.as_string(5, fill="+"), b"+5"),
    (lambda: S.as_string(5, fill=" "), b" 5"),
    (lambda: S.as_string(5, fill="#"), b"5"),
    (lambda: S.as_string([True, False]), [b"true", b"false"]),
    (lambda: S.as_string(True, width=6), b"true"),
    (lambda: S.as_string(1 + 2j), b"(1.000000,2.000000)"),
    (lambda: S.as_string(1 + 2j, precision=1), b"(1.0,2.0)"),
    (lambda: S.as_string("a"), b"a"),
    (lambda: S.as_string(float("nan")), b"nan"),
    (lambda: S.as_string(float("inf"), width=6, fill="0"), b"   inf"),
    (lambda: S.as_string(tf.constant(200, tf.uint8)), b"200"),
    (lambda: S.as_string(tf.constant(0.1, tf.float64), shortest=True), b"0.1"),
    (lambda: S.as_string(tf.constant(1.5, tf.float16)), b"1.500000"),
    (lambda: S.as_string(tf.constant(2**63, tf.uint64)), b"9223372036854775808"),
    (lambda: S.as_string(0.1, precision=20), b"0.10000000149011611938"),
    (lambda: S.as_string(True, width=6, fill="-"), b"true"),
    (lambda: S.as_string(1.5, width=8, precision=1, fill="0"), b"000001.5"),
    (lambda: S.as_string("a", width=4), b"   a"),
    (lambda: S.as_string(1.0, shortest=True, precision=3), b"1"),
    (lambda: S.as_string(5.0, fill="0"), b"5.000000"),
    (lambda: S.format("a {} b {}", (tf.range(10), "x")), b'a [0 1 2 ... 7 8 9] b "x"'),
    (lambda: S.format("{}", tf.constant([["a", "b"], ["c", "d"]])), b'[["a" "b"]\n ["c" "d"]]'),
    (lambda: S.format("x", ()), b"x"),
    (lambda: S.format("%%", tf.constant(1), placeholder="%%"), b"1"),
    (lambda: S.format("{}", [tf.constant([1.5, 2.0])]), b"[1.5 2]"),
    (lambda: S.format("{}", tf.range(10), summarize=-1), b"[0 1 2 3 4 5 6 7 8 9]"),
    (lambda: S.format("{}", tf.constant("a")), b'"a"'),
    (lambda: S.format("{}", tf.constant(True)), b"1"),
    (lambda: S.format("{}", tf.constant([True])), b"[1]"),
    (lambda: S.format("{}", ([1, 2],)), b"[1 2]"),
    (lambda: S.format("{}", tf.zeros([0])), b"[]"),
    (
        lambda: S.format("{}", tf.reshape(tf.range(16), [8, 2]), summarize=1),
        b"[[0 1]\n ...\n [14 15]]",
    ),
    (lambda: tf.as_string(1.0), b"1.000000"),
]

_REFUSED: Refused = [
    (lambda: S.to_number("1_0"), tf.errors.InvalidArgumentError),
    (lambda: S.to_number(""), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("abc"), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1.0", tf.int32), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("99999999999", tf.int32), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("-5", tf.uint32), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1", tf.int8), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1e5", tf.int32), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1 2"), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1f"), tf.errors.InvalidArgumentError),
    (lambda: S.to_number("1e", tf.float64), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(5, width=4, fill="x"), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(5, width=4, fill="00"), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(5, precision=2), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(1.5, scientific=True, shortest=True), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(True, precision=2), tf.errors.InvalidArgumentError),
    (lambda: S.as_string(5, scientific=True), tf.errors.InvalidArgumentError),
    (lambda: S.format("{} {}", (1,)), ValueError),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)

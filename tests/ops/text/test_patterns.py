"""Regular expressions: what TensorFlow gives with RE2."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

S = tf.strings

_GIVEN: Given = [
    (lambda: S.regex_replace("abc", "b*", "-"), b"-a-c-"),
    (lambda: S.regex_replace("baac", "a*", "-"), b"-b-c-"),
    (lambda: S.regex_replace("abc", "", "-"), b"-a-b-c-"),
    (lambda: S.regex_replace("héllo", ".", "x"), b"xxxxx"),
    (lambda: S.regex_replace("a.b", "\\.", "\\\\"), b"a\\b"),
    (lambda: S.regex_replace("ab", "(a)(b)", "\\2\\1\\0"), b"baab"),
    (lambda: S.regex_replace("aaa", "a", "b", replace_global=False), b"baa"),
    (lambda: S.regex_replace("a\n", "a$", "b"), b"a\n"),
    (lambda: S.regex_replace("a1B2", "[[:digit:]]+", "#"), b"a#B#"),
    (lambda: S.regex_replace("aB", "[[:^upper:]]", "#"), b"#B"),
    (lambda: S.regex_replace("αβ", "\\pL", "#"), b"##"),
    (lambda: S.regex_replace("αβ", "\\w", "#"), b"\xce\xb1\xce\xb2"),
    (lambda: S.regex_replace("A", "(?i)a", "#"), b"#"),
    (lambda: S.regex_replace("a\nb", "a.b", "#"), b"a\nb"),
    (lambda: S.regex_replace("a\nb", "(?s)a.b", "#"), b"#"),
    (lambda: S.regex_replace("a\x0bb", "\\s", "#"), b"a\x0bb"),
    (lambda: S.regex_replace("a.b", "\\Q.\\E", "#"), b"a#b"),
    (lambda: S.regex_replace("ab\n", "b\\z", "#"), b"ab\n"),
    (lambda: S.regex_replace("a\nb", "(?m)$", "#"), b"a#\nb#"),
    (lambda: S.regex_replace("ab", "(?P<n>a)", "<\\1>"), b"<a>b"),
    (lambda: S.regex_replace("a]b", "[]]", "#"), b"a#b"),
    (lambda: S.regex_replace("a^b", "[\\^]", "#"), b"a#b"),
    (lambda: S.regex_replace("a-b", "[+\\-]", "#"), b"a#b"),
    (lambda: S.regex_replace(tf.ragged.constant([["a"], []]), "a", "b"), [[b"b"], []]),
    (lambda: S.regex_replace("hello", "l(?:l)", "L"), b"heLo"),
    (lambda: S.regex_replace("x\x00y", "\\x00", "#"), b"x#y"),
    (lambda: S.regex_replace("é", "\\x{e9}", "#"), b"#"),
    (lambda: S.regex_replace("ab", "a|b|", "#"), b"##"),
    (lambda: S.regex_replace("aé", "é", "e"), b"ae"),
    (lambda: S.regex_replace("I it", "\\bi", "#"), b"I #t"),
    (lambda: S.regex_replace("a b", "[[:space:]]", "_"), b"a_b"),
    (lambda: S.regex_replace("[a]", "[[]", "("), b"(a]"),
    (lambda: S.regex_replace("É", "(?i)é", "#"), b"#"),
    (lambda: S.regex_replace("aa", "a{,2}", "#"), b"aa"),
    (lambda: S.regex_replace("a{,2}", "a{,2}", "#"), b"#"),
    (lambda: S.regex_replace("<br />x", "<br />", " "), b" x"),
    (lambda: S.regex_replace("ab", "[^a]", "#"), b"a#"),
    (lambda: S.regex_replace("a\nb", "[^a]", "#"), b"a##"),
    (lambda: S.regex_full_match(["abc", "abcd"], "abc"), [True, False]),
    (lambda: S.regex_full_match("a\n", "a"), False),
    (lambda: S.regex_full_match("ab", "a|ab"), True),
    (lambda: S.regex_full_match("abc", "a.c$"), True),
    (lambda: S.regex_full_match(["", ""], ""), [True, True]),
]

_REFUSED: Refused = [
    (lambda: S.regex_replace("a", "(?=a)", "b"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a", "(a)\\1", "b"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a", "(", "b"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a+b", "a++", "#"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a", "a{1001}", "#"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("ab", "(?<n>a)", "<\\1>"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a", "\\Z", "#"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_replace("a", "*", "#"), tf.errors.InvalidArgumentError),
    (lambda: S.regex_full_match("a", "["), tf.errors.InvalidArgumentError),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)

"""Patterns and rewrites that are refused, in words."""

from __future__ import annotations

import pytest

import gtape as tf


@pytest.mark.parametrize("rewrite", ["\\2", "\\x", "\\"])
def test_a_rewrite_names_groups_of_the_pattern(rewrite: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="invalid rewrite"):
        tf.strings.regex_replace("ab", "(a)", rewrite)


@pytest.mark.parametrize("pattern, why", [
    ("(?=a)", "no group"), ("(?<=a)b", "no group"), ("(a)\\1", "invalid escape"),
    ("a++", "bad repetition"), ("a{2}{3}", "bad repetition"), ("a{1001}", "repetition size"),
    ("(", "missing \\)"), (")", "unexpected \\)"), ("[a", "missing \\]"), ("*", "nothing"),
    ("\\p{Greek}", "no category"), ("[[:nope:]]", "no class"), ("(?U)a", "flags")])
def test_a_pattern_says_what_is_wrong(pattern: str, why: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=why):
        tf.strings.regex_replace("ab", pattern, "")


def test_python_s_own_syntax_is_plain_text_where_it_is_in_re2() -> None:
    assert tf.strings.regex_replace("a{,2}", "a{,2}", "#").numpy() == b"#"
    assert tf.strings.regex_full_match("a\n", "a$").numpy() == tf.constant(False)


def test_flags_hold_to_the_end_of_their_group() -> None:
    def full(text: str, pattern: str) -> bool:
        return bool(tf.strings.regex_full_match(text, pattern))

    assert full("aB", "a(?i)b") and full("C", "a(?i)b|c") and not full("AB", "a(?i)b")
    assert full("aBc", "(a(?i)b)c") and not full("aBC", "(a(?i)b)c")
    assert full("Ab", "(?i:a)b") and not full("AB", "(?i:a)b")
    assert full("a\nb", "(?s)a.b") and full("a\nb", "(?m)a$\nb") and not full("a\nb", "a$\nb")

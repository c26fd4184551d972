"""gradient(..., on_none=...): silence, a warning or an error when an answer is None."""

from __future__ import annotations

import warnings

import pytest

import gtape as tf
from gtape.errors import GradientNoneError, GradientNoneWarning


def _unwatched() -> tuple[tf.GradientTape, tf.Tensor, tf.Tensor]:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape, y, x


def test_on_none_ignores_unless_told() -> None:
    tape, y, x = _unwatched()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tape.gradient(y, x) is None


def test_on_none_warns_with_the_reason_at_the_users_line() -> None:
    tape, y, x = _unwatched()
    with pytest.warns(GradientNoneWarning, match="not watched") as seen:
        assert tape.gradient(y, x, on_none="warn") is None
    assert seen[0].filename == __file__


def test_on_none_raises_with_the_reason() -> None:
    tape, y, x = _unwatched()
    with pytest.raises(GradientNoneError, match="not watched"):
        tape.gradient(y, [x], on_none="raise")


def test_on_none_is_silent_when_there_is_an_answer() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    assert float(tape.gradient(y, x, on_none="raise")) == 6.0


def test_an_unknown_on_none_leaves_the_tape_unspent() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(ValueError, match="on_none"):
        tape.gradient(y, x, on_none="shout")
    assert float(tape.gradient(y, x)) == 6.0

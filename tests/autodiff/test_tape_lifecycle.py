"""The life of a tape: entered, left, spent, reset, entered again."""

from __future__ import annotations

import warnings

import pytest

import gtape as tf
from gtape.errors import TapeUseWarning

_SPENT = "non-persistent GradientTape can only be used to compute one set of gradients"


def _square(persistent: bool = False) -> tuple[tf.GradientTape, tf.Tensor, tf.Variable]:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=persistent) as tape:
        y = x * x
    return tape, y, x


@pytest.mark.parametrize("ask", ["gradient", "jacobian"])
def test_a_tape_answers_once(ask: str) -> None:
    tape, y, x = _square()
    assert float(getattr(tape, ask)(y, x)) == 6.0
    for again in ("gradient", "jacobian"):
        with pytest.raises(RuntimeError, match=_SPENT):
            getattr(tape, again)(y, x)


def test_a_persistent_tape_answers_as_often_as_asked() -> None:
    tape, y, x = _square(persistent=True)
    assert [float(tape.gradient(y, x)) for _ in range(3)] == [6.0] * 3


def test_an_unentered_tape_says_so() -> None:
    x = tf.Variable(1.0)
    tape = tf.GradientTape()
    with pytest.raises(RuntimeError, match="never entered"):
        tape.gradient(x, x)
    with pytest.raises(RuntimeError, match="never entered"):
        tape.watch(x)


def test_a_rejected_question_leaves_the_tape_unspent() -> None:
    tape, y, x = _square()
    for target, sources, more in ((None, x, {}), (y, 3.0, {}), (y, x, {"output_gradients": [1, 2]}),
                                  (y, x, {"unconnected_gradients": "nonsense"}),
                                  (y, x, {"on_none": "shout"})):
        with pytest.raises((TypeError, ValueError)):
            tape.gradient(target, sources, **more)
    assert float(tape.gradient(y, x)) == 6.0


def test_a_spent_tape_starts_fresh_when_entered_again() -> None:
    tape, y, x = _square()
    tape.gradient(y, x)
    with tape:
        z = x * 5.0
    assert tape.gradient(z, x) is not None


def test_a_closed_tape_goes_on_where_it_was() -> None:
    tape, y, x = _square()
    with tape:
        z = y * 2.0
    assert float(tape.gradient(z, x)) == 12.0


def test_an_open_tape_cannot_be_entered_again() -> None:
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="still recording"):
        tape.__enter__()


def test_leaving_twice_is_fine() -> None:
    tape, y, x = _square()
    tape.__exit__(None, None, None)
    assert float(tape.gradient(y, x)) == 6.0


def test_an_exception_passes_and_the_tape_stays_usable() -> None:
    x = tf.Variable(3.0)
    tape = tf.GradientTape()
    with pytest.raises(ZeroDivisionError), tape:
        y = x * x
        1 / 0
    outside = x * y
    assert float(tape.gradient(y, x)) == 6.0
    assert outside is not None


def test_tapes_may_close_in_any_order() -> None:
    x = tf.Variable(3.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    assert first.gradient(z, x) is None
    assert float(second.gradient(z, x)) == 27.0


# -------------------------------------------------------------------------- inside the block


def test_a_gradient_inside_the_block_stops_a_plain_tape() -> None:
    x = tf.Variable(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tf.GradientTape() as tape:
            y = x * x
            assert float(tape.gradient(y, x)) == 6.0
            with pytest.raises(RuntimeError):
                tape.watch(x)
            with pytest.raises(ValueError):
                tape.reset()
            with pytest.raises(RuntimeError), tape.stop_recording():
                pass


def test_a_gradient_inside_a_persistent_block_is_recorded_and_warns() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * x
        with pytest.warns(TapeUseWarning, match="costs time and memory"):
            g = tape.gradient(y, x)
    assert float(tape.gradient(g, x)) == 18.0


def test_no_warning_under_stop_recording() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording(), warnings.catch_warnings():
            warnings.simplefilter("error")
            g = tape.gradient(y, x)
    assert float(g) == 6.0
    assert tape.gradient(g, x) is None


def test_stop_recording_pauses_one_tape() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            z = x * x * x
        y = y + z
    assert float(tape.gradient(y, x)) == 6.0
    assert float(outer.gradient(y, x)) == 33.0


def test_stop_recording_resumes_after_an_exception() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with pytest.raises(ZeroDivisionError), tape.stop_recording():
            1 / 0
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_stop_recording_needs_a_recording_tape() -> None:
    tape, _, _ = _square()
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass
    with pytest.raises(RuntimeError, match="not recording"), tf.GradientTape().stop_recording():
        pass


def test_reset_forgets_records_and_watches() -> None:
    x, t = tf.Variable(3.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = x * x * t
        tape.reset()
        assert tape.watched_variables() == ()
        z = x * t
    dx, dt = tape.gradient(z, [x, t])
    assert (float(dx), dt) == (2.0, None)
    assert y is not None
    with pytest.raises(ValueError, match="not recording"):
        tape.reset()


def test_a_spent_tape_can_be_reset_by_entering() -> None:
    tape, y, x = _square()
    tape.gradient(y, x)
    with tape:
        tape.reset()
        z = x * x * x
    assert float(tape.gradient(z, x)) == 27.0


def test_a_gradient_that_fails_leaves_a_persistent_tape_usable() -> None:
    x = tf.Variable(2.0)

    @tf.custom_gradient
    def broken(t):  # type: ignore[no-untyped-def]
        def grad(g):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

        return t * 1.0, grad

    with tf.GradientTape(persistent=True) as tape:
        bad, good = broken(x), x * x
    with pytest.raises(ZeroDivisionError):
        tape.gradient(bad, x)
    assert float(tape.gradient(good, x)) == 4.0

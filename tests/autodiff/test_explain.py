"""Why is it None: every cause, with the file and line of the broken link and advice."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.autodiff.explain import Explanation

_LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def _line(mark: str) -> int:
    """The number of the line that ends in the comment `mark`."""
    (found,) = [i for i, line in enumerate(_LINES, 1) if line.endswith(f"# {mark}")]
    return found


def _explained(tape: tf.GradientTape, target: Any, source: Any, cause: str, *, advice: str,
               at: str = "") -> Explanation:
    """Ask, and check the cause, the place, the advice, and that the tape is as it was."""
    before = (list(tape._records), list(tape._marks), tape._spent)
    found = tape.explain(target, source, show=False)
    assert (list(tape._records), list(tape._marks), tape._spent) == before
    assert found.cause == cause, found.text
    assert advice in found.text, found.text
    if at:
        assert found.site is not None, found.text
        assert (found.site.file, found.site.line) == (__file__, _line(at)), found.text
        assert f"{__file__}:{_line(at)}" in found.text
        assert _LINES[_line(at) - 1].strip() in found.text
    return found


# -------------------------------------------------------------------------- what is not watched


def test_a_tensor_that_was_not_watched() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x  # used unwatched
    _explained(tape, y, x, "NOT_WATCHED", at="used unwatched", advice="tape.watch(x)")
    assert tape.gradient(y, x) is None


def test_a_tensor_that_was_watched_too_late() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x  # used before the watch
        tape.watch(x)
    _explained(tape, y, x, "WATCHED_TOO_LATE", at="used before the watch",
               advice="before the first use")


def test_a_variable_that_is_not_trainable() -> None:
    v = tf.Variable(3.0, trainable=False, name="frozen")
    with tf.GradientTape() as tape:
        y = v * v
    found = _explained(tape, y, v, "NOT_TRAINABLE", advice="tape.watch(variable)")
    assert "'frozen:0'" in found.text


def test_a_tape_that_does_not_watch_by_itself() -> None:
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    _explained(tape, y, v, "NOT_WATCHED", advice="watch_accessed_variables=False")


# -------------------------------------------------------------------------- dtypes


def test_an_integer_source() -> None:
    x = tf.Variable(30)
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) * 2.0
    found = _explained(tape, y, x, "INTEGER_DTYPE", advice="Make it floating")
    assert "int32" in found.text


def test_a_path_through_integers() -> None:
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.int32)  # cast to int
        z = tf.cast(y, tf.float32) * x.shape.num_elements()
    _explained(tape, z, x, "INTEGER_DTYPE", at="cast to int", advice="floating")


def test_an_integer_target() -> None:
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        y = tf.argmax([x, 1.0])
    found = tape.explain(y, x, show=False)
    assert found.cause in ("INTEGER_DTYPE", "NON_DIFFERENTIABLE_OP")


# -------------------------------------------------------------------------- cuts


def test_stop_gradient() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        h = tf.stop_gradient(h)  # stopped here
        y = h * 2.0
    _explained(tape, y, x, "STOP_GRADIENT", at="stopped here", advice="stop_gradient")


@pytest.mark.parametrize("op", [tf.floor, tf.round, tf.math.ceil, lambda x: x // 2.0])
def test_an_op_without_a_slope(op: Any) -> None:
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        h = op(x * 1.5)  # no slope
        y = h * 2.0
    if op.__name__ == "<lambda>":
        _explained(tape, y, x, "NON_DIFFERENTIABLE_OP", advice="not differentiable")
    else:
        _explained(tape, y, x, "NON_DIFFERENTIABLE_OP", at="no slope", advice="smooth function")


def test_a_comparison() -> None:
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        mask = x > 1.0  # compared
        y = tf.cast(mask, tf.float32) * 2.0
    _explained(tape, y, x, "NON_DIFFERENTIABLE_OP", at="compared", advice="smooth function")


# -------------------------------------------------------------------------- left the tape


def _left(mark: str, make: Any) -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = x * x
        y = make(h)
    assert tape.gradient(y, x) is None
    with tf.GradientTape() as tape:
        h = x * x
        y = make(h)
    _explained(tape, y, x, "LEFT_TO_HOST", at=mark, advice="gtape functions")


def test_left_through_numpy_method() -> None:
    def make(h: tf.Tensor) -> tf.Tensor:
        array = h.numpy()  # .numpy()
        return tf.reduce_sum(array)

    _left(".numpy()", make)


def test_left_through_a_numpy_function() -> None:
    def make(h: tf.Tensor) -> tf.Tensor:
        mean = np.mean(h)  # np.mean
        return tf.constant(mean) * 2.0

    _left("np.mean", make)


def test_left_through_float() -> None:
    def make(h: tf.Tensor) -> tf.Tensor:
        number = float(h[0])  # float()
        return tf.constant(number) + 1.0

    _left("float()", make)


def test_left_through_numpy_with_tensor_arithmetic_after() -> None:
    def make(h: tf.Tensor) -> tf.Tensor:
        array = np.sqrt(h)  # np.sqrt
        return tf.reduce_sum(tf.exp(tf.constant(array)) * 2.0)

    _left("np.sqrt", make)


def test_left_through_a_constant_of_a_variable() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = tf.constant(x)  # tf.constant
        y = h * 2.0
    _explained(tape, y, x, "LEFT_TO_HOST", at="tf.constant", advice="gtape functions")


def test_left_through_dlpack() -> None:
    def make(h: tf.Tensor) -> tf.Tensor:
        array = np.from_dlpack(h)  # dlpack
        return tf.reduce_sum(array)

    _left("dlpack", make)


# -------------------------------------------------------------------------- variables and state


def test_a_variable_rebound_to_a_tensor() -> None:
    x = tf.Variable(2.0, name="x")
    x = x + 1.0  # rebound
    with tf.GradientTape() as tape:
        y = x * x
    found = _explained(tape, y, x, "VARIABLE_REBOUND", at="rebound", advice="assign_add")
    assert "'x:0'" in found.text


def test_the_tutorials_loop() -> None:
    x = tf.Variable(2.0)
    causes = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x * x
        causes.append(tape.explain(y, x, show=False).cause)
        x = x + 1.0
    assert causes == ["CONNECTED", "VARIABLE_REBOUND"]


def test_a_variable_made_of_a_computed_value() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        copy = tf.Variable(x * x, name="copy")  # made of a tensor
        y = copy * 2.0
    found = _explained(tape, y, x, "STATE_ASSIGN", at="made of a tensor",
                       advice="the tensor itself")
    assert "'copy:0'" in found.text


def test_state_stops_gradients() -> None:
    x, state = tf.Variable(3.0), tf.Variable(0.0, name="state")
    with tf.GradientTape() as tape:
        state.assign(x * x)  # assigned
        y = state * 2.0
    found = _explained(tape, y, x, "STATE_ASSIGN", at="assigned", advice="the tensor itself")
    assert "state" in found.text


# -------------------------------------------------------------------------- elsewhere


def test_a_target_computed_before_or_after_the_block() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        inside = x * x
    after = inside * 2.0
    _explained(tape, after, x, "USED_OUTSIDE_TAPE", advice="inside the block")


def test_a_target_computed_under_stop_recording() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape, tape.stop_recording():
        y = x * x
    _explained(tape, y, x, "USED_OUTSIDE_TAPE", advice="stop_recording")


def test_a_target_of_another_thread() -> None:
    x, made = tf.Variable(3.0), []
    with tf.GradientTape() as tape:
        thread = threading.Thread(target=lambda: made.append(x * x))
        thread.start()
        thread.join(10)
    _explained(tape, made[0], x, "USED_OUTSIDE_TAPE", advice="thread")


def test_another_branch_was_taken() -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    with tf.GradientTape() as tape:
        y = a * 2.0 if float(a) > 0 else b * 2.0
    found = _explained(tape, y, b, "NOT_USED", advice="branch")
    assert "'b:0'" in found.text


def test_used_but_not_for_this_target() -> None:
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        a, b = x * 2.0, tf.Variable(1.0) * 3.0
    assert a is not None
    _explained(tape, b, x, "NOT_USED", advice="nothing computed from it leads to")


def test_a_spent_tape() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    _explained(tape, y, x, "TAPE_CONSUMED", advice="persistent=True")


# -------------------------------------------------------------------------- connected


def test_connected() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    found = _explained(tape, y, x, "CONNECTED", advice="not None")
    assert [s.op for s in found.steps] == ["multiply"]
    assert float(tape.gradient(y, x)) == 6.0


def test_a_dead_relu() -> None:
    x = tf.Variable([-1.0, -2.0])
    with tf.GradientTape() as tape:
        h = tf.nn.relu(x)  # dead
        y = tf.reduce_sum(h)
    _explained(tape, y, x, "CONNECTED_BUT_ZERO", at="dead", advice="zeros")


def test_a_masked_branch_of_where() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.where(x > 5.0, x, 0.0)  # masked
    _explained(tape, y, x, "CONNECTED_BUT_ZERO", at="masked", advice="zeros")


def test_a_derivative_that_does_not_depend_on_the_source() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * 3.0
        g = inner.gradient(y, x)
    assert outer.explain(g, x, show=False).cause in ("STRUCTURAL", "NOT_USED")
    assert outer.gradient(g, x) is None


# -------------------------------------------------------------------------- the answer itself


def test_it_prints_and_converts_to_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.floor(x) * 2.0
    found = tape.explain(y, x)
    assert capsys.readouterr().out.strip() == found.text.strip() == str(found).strip()
    plain = found.to_dict()
    assert plain["cause"] == "NON_DIFFERENTIABLE_OP"
    assert plain["file"] == __file__ and isinstance(plain["line"], int)
    assert [s["op"] for s in plain["steps"]] == ["floor", "multiply"]
    assert plain["steps"][0]["broken"] is True


def test_explaining_never_spends_the_tape() -> None:
    x, stranger = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x) * x
    for source in (x, stranger, y):
        tape.explain(y, source, show=False)
        tape.explain([y, y], source, show=False)
    assert float(tape.gradient(y, x)) == pytest.approx(np.cos(3) * 3 + np.sin(3), rel=1e-6)


def test_explaining_inside_the_block_records_nothing() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        count = len(tape._records)
        tape.explain(y, x, show=False)
        assert len(tape._records) == count
        z = y * x
    assert float(tape.gradient(z, x)) == 27.0


@pytest.mark.parametrize("target, source", [(None, 1.0), ("y", None), (3.0, 3.0)])
def test_it_asks_for_tensors(target: Any, source: Any) -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        x * x
    with pytest.raises(TypeError):
        tape.explain(target, source, show=False)

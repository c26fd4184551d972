"""A restore that fails leaves every object as it was, whatever a Python object raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gtape as tf

Checkpoint = tf.train.Checkpoint


class State(tf.train.experimental.PythonState):
    """Takes its text and then, maybe, raises an error: for any text, or for a new one."""

    def __init__(self, text: str = "init", error: BaseException | None = None,
                 always: bool = False) -> None:
        self.text, self.error, self.always = text, error, always

    def serialize(self) -> str:
        return self.text

    def deserialize(self, string_value: str) -> None:
        new = string_value != "init"
        self.text = string_value
        if self.error is not None and (new or self.always):
            raise self.error


class Stuck(State):
    """Never takes an old text back."""

    def deserialize(self, string_value: str) -> None:
        if string_value == "init":
            raise RuntimeError("stuck")
        super().deserialize(string_value)


def _program() -> tuple[Any, Any]:
    v, optimizer = tf.Variable([1.0]), tf.keras.optimizers.Adam()
    return v, optimizer


@pytest.fixture
def path(tmp_path: Path) -> str:
    v, optimizer = _program()
    optimizer.build([v])
    v.assign([5.0])
    return Checkpoint(a=State("saved"), b=State("saved"), v=v, o=optimizer).save(tmp_path / "x")


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("error", [ValueError("z"), IndexError("z"), AttributeError("z"),
                                   RuntimeError("z"), ZeroDivisionError("z")], ids=repr)
def test_any_error_of_a_state_changes_nothing(error: Exception, always: bool, path: str) -> None:
    a, b = State(), State(error=error, always=always)
    v, optimizer = _program()
    checkpoint = Checkpoint(a=a, b=b, v=v, o=optimizer)
    with pytest.raises(tf.errors.DataLossError, match=r"nothing was restored\. 'b' d") as got:
        checkpoint.restore(path)
    assert got.value.__cause__ is error
    assert (a.text, b.text, v.numpy().tolist()) == ("init", "init", [1])
    assert not optimizer.built
    assert checkpoint._counter is None
    b.error = None
    checkpoint.restore(path).assert_consumed()
    assert (a.text, b.text, v.numpy().tolist()) == ("saved", "saved", [5])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_interruption_changes_nothing_and_goes_on(error: BaseException, path: str) -> None:
    a, b = State(), State(error=error)
    v, optimizer = _program()
    with pytest.raises(type(error)) as got:
        Checkpoint(a=a, b=b, v=v, o=optimizer).restore(path)
    assert got.value is error
    assert (a.text, b.text, v.numpy().tolist()) == ("init", "init", [1])
    assert not optimizer.built


def test_a_state_that_cannot_be_put_back_is_named(path: str) -> None:
    a, b = Stuck(), State(error=IndexError("z"))
    v, optimizer = _program()
    with pytest.raises(tf.errors.DataLossError, match="could not be put back: a") as got:
        Checkpoint(a=a, b=b, v=v, o=optimizer).restore(path)
    assert "nothing was restored" not in str(got.value)
    assert (a.text, b.text) == ("saved", "init")


def test_a_state_that_has_no_present_text_changes_nothing(path: str) -> None:
    class Mute(State):
        def serialize(self) -> str:
            raise OSError("mute")

    a, v, optimizer = State(), *_program()
    with pytest.raises(OSError, match="mute"):
        Checkpoint(a=a, b=Mute(), v=v, o=optimizer).restore(path)
    assert a.text == "init" and not optimizer.built


def test_random_streams_are_put_back(tmp_path: Path) -> None:
    tf.random.set_seed(1)
    tf.random.uniform((3,), seed=2)
    file = Checkpoint(a=tf.train.RandomStreams(), b=State("saved")).write(tmp_path / "x")
    tf.random.set_seed(7)
    before = tf.train.RandomStreams().serialize()
    with pytest.raises(tf.errors.DataLossError, match="nothing was restored"):
        Checkpoint(a=tf.train.RandomStreams(), b=State(error=IndexError("z"))).restore(file)
    assert tf.train.RandomStreams().serialize() == before

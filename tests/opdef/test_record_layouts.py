"""The places by which backward steps read records are those where they were written."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf
from gtape.core import recording
from gtape.opdef import primitive
from gtape.opdef.composite import Composite


def _scaled(x: Any, *, times: float = 2.0) -> Any:
    """x times a number, and its square."""
    return x * times, x * x


scaled = Composite(_scaled, "size")
scaled.vjp(x=lambda g, *, times: g * times)


def test_names_and_places_are_those_of_a_record() -> None:
    fields = recording.Record._fields
    assert (fields[recording.OP], fields[recording.INPUT_KEYS], fields[recording.PAYLOAD]) == (
        "op", "inputs", "payload")


def _record(function: Any, *args: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(args)
        function(*args)
    return tape._records[-1]


@pytest.mark.parametrize("function, arity", [
    (tf.tanh, 1), (tf.add, 2), (lambda *xs: tf.tanh.op.apply(xs), 1),
    (lambda *xs: tf.add.op.apply(xs), 2), (tf.reduce_sum, 1)])
def test_an_op_and_its_input_keys(function: Any, arity: int) -> None:
    args = [tf.constant([float(i)]) for i in range(arity)]
    record = _record(function, *args)
    keys = tuple(x._k for x in args)
    assert record[recording.INPUT_KEYS] == (keys if arity > 1 else keys[0])
    assert record[recording.OP].name.rstrip("_") in ("tanh", "add", "reduce_sum")


def test_what_rules_keep() -> None:
    x = tf.constant([1.0, 2.0])
    record = _record(lambda x: scaled.run((x,), (3.0,)), x)
    assert record[primitive.ATTRS] == (3.0,) and record[primitive.IS_COMPLEX] is False
    (group,) = (primitive.RuleGroup(*g) for g in record[primitive.GROUPS])
    assert group.rule is scaled.vjp_rules.rule_of(0)
    assert group.positions == (0,) and group.keys == (x._k,)
    assert record[primitive.GROUPS + 1] == (x,) and len(record) == primitive.GROUPS + 2


def test_a_cotangent_of_what_a_composite_saves_goes_through_its_definition() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, size = scaled.run((x,), (3.0,))
        total = y + size
    assert tape.gradient(total, x).numpy().tolist() == [5.0, 7.0]

"""RepeatedCalls: a procedure that is called again and again becomes a program, unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.compile.frontend import repeated_calls
from gtape.compile.frontend.repeated_calls import AttributeWatch, RepeatedCalls
from gtape.compile.frontend.signature import Arguments
from gtape.core.context import tracer_now
from gtape.core.errors import NotTraceableError


class Counter:
    """Adds what it is given times `factor`, and counts how often Python did."""

    def __init__(self) -> None:
        self.total = tf.Variable(0.0)
        self.factor = 1.0
        self._ran: list[int] = [0]
        self.repeated = RepeatedCalls(lambda: AttributeWatch(self, ()))

    @property
    def ran(self) -> int:
        return self._ran[0]

    def add(self, x: Any) -> None:
        self._ran[0] += 1
        self.total.assign_add(tf.reduce_sum(x) * self.factor)

    def __call__(self, x: Any, procedure: Callable[[Any], None] | None = None,
                 named: Any = ()) -> None:
        arguments = Arguments((x,), {})
        alike = self.repeated.find(arguments, named)
        if alike.program is None:
            self.repeated.run(alike, arguments, procedure or self.add)
        else:
            alike.program.run(*arguments.tensors)


@pytest.fixture(params=["node by node", "native"])
def counter(request: Any, monkeypatch: pytest.MonkeyPatch) -> Counter:
    native = request.param == "native"
    monkeypatch.setattr(gradual, "COMPILED", 1 if native else 1 << 60)
    monkeypatch.setattr(gradual, "NATIVE", 2 if native else 1 << 60)
    return Counter()


def test_python_runs_twice_and_for_a_trace(counter: Counter) -> None:
    for i in range(9):
        counter(tf.constant([float(i), 1.0]))
    assert counter.total.numpy() == 36 + 9
    assert counter.ran == 3


def test_other_shapes_and_other_objects_are_other_calls(counter: Counter) -> None:
    one, other = object(), object()
    for _ in range(6):
        counter(tf.ones(2), named=[one])
        counter(tf.ones(3), named=[one])
        counter(tf.ones(2), named=[other])
    assert counter.total.numpy() == 6 * 7
    assert counter.ran == 9


def test_a_change_counts_in_the_next_call(counter: Counter) -> None:
    for _ in range(5):
        counter(tf.ones(2))
    counter.factor = 10.0
    for _ in range(5):
        counter(tf.ones(2))
    assert counter.total.numpy() == 10 + 100
    assert counter.ran == 6


def test_who_changes_an_attribute_in_every_call_runs_in_python(counter: Counter) -> None:
    def growing(x: Any) -> None:
        counter.add(x)
        counter.factor += 1.0

    for _ in range(6):
        counter(tf.ones(1), growing)
    assert counter.total.numpy() == 1 + 2 + 3 + 4 + 5 + 6
    assert counter.ran == 6


def test_what_cannot_be_traced_runs_in_python(counter: Counter) -> None:
    def by_number(x: Any) -> None:
        counter.add(x * float(tf.reduce_sum(x).numpy()))

    def refused(x: Any) -> None:
        if tracer_now() is not None:
            raise NotTraceableError("not this")
        counter.add(x)

    for _ in range(6):
        counter(tf.constant([2.0]), by_number)
    assert counter.total.numpy() == 24
    for _ in range(6):
        counter(tf.constant([2.0, 2.0]), refused)
    assert counter.total.numpy() == 48
    assert counter.ran == 12


def test_traces_are_few_and_kinds_are_forgotten(counter: Counter) -> None:
    for n in range(1, repeated_calls._KINDS + 40):
        for _ in range(3):
            counter(tf.ones(n))
    assert counter.repeated.traces == repeated_calls._MOST
    assert len(counter.repeated.known) <= repeated_calls._KINDS


def test_an_error_is_raised_in_every_call(counter: Counter) -> None:
    def wrong(x: Any) -> None:
        raise ValueError("wrong")

    for _ in range(5):
        with pytest.raises(ValueError, match="wrong"):
            counter(tf.ones(1), wrong)
    assert counter.repeated.traces == 0

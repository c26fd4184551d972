"""Functions whose programs take over after a while."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.compile.frontend.function import Function

pytestmark = pytest.mark.native


def _step() -> tuple[Function, tf.Variable]:
    total = tf.Variable(tf.zeros([4]))

    def step(batch: Any) -> Any:
        total.assign_add(tf.tanh(batch["x"]) * batch["y"])
        return {"sum": tf.reduce_sum(total)}

    return Function(step, gradual=nullcontext), total


def _batch(i: int, rows: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(i)
    return {"x": tf.constant(rng.normal(size=rows), tf.float32),
            "y": tf.constant(rng.normal(size=rows), tf.float32)}


def _executable(function: Function) -> Any:
    (found,) = function._fast.values()
    return found


def test_the_program_takes_over_at_one_call_and_the_numbers_go_on(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradual, "MOST", 5)
    function, total = _step()
    expected = np.zeros(4)
    for i in range(9):
        batch = _batch(i)
        found = function(batch)
        expected += np.tanh(batch["x"].numpy()) * batch["y"].numpy()
        np.testing.assert_allclose(found["sum"], expected.sum(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
        assert (_executable(function).program is not None) == (i >= 4)
    assert function.experimental_get_tracing_count() == 1


def test_what_costs_much_for_each_call_is_compiled_soon_and_what_costs_little_later() -> None:
    def calls(size: int) -> int:
        function = Function(lambda x: tf.sin(tf.exp(x) + x), gradual=nullcontext)
        made = function.traced_for(_arguments(function, size))
        return gradual.of_step(made, lambda program: None, nullcontext)._native

    assert calls(4) == gradual.MOST
    assert calls(1 << 24) < 20


def _arguments(function: Function, size: int) -> Any:
    from gtape.compile.frontend.signature import Arguments

    return Arguments((tf.zeros([size]),), {})


def test_a_failing_compiler_is_told_where_the_program_would_take_over(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(traced: Any) -> Any:
        raise RuntimeError("no program")

    monkeypatch.setattr(gradual, "MOST", 3)
    monkeypatch.setattr(gradual, "prepare", broken)
    function, _ = _step()
    function(_batch(0))
    function(_batch(1))
    with pytest.raises(RuntimeError, match="no program"):
        function(_batch(2))


def test_under_a_tape_the_gradient_is_that_of_the_function() -> None:
    function = Function(lambda x: tf.sin(x) * x, gradual=nullcontext)
    x = tf.constant([1.0, 2.0])
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_allclose(tape.gradient(y, x), np.cos(x) * x + np.sin(x), rtol=1e-6)


def test_the_call_that_waits_for_the_compiler_does_so_in_the_given_context(
        monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    @contextmanager
    def waiting() -> Any:
        yield
        waited.append(executable().calls)

    monkeypatch.setattr(gradual, "MOST", 4)
    function = Function(lambda x: x * 3, gradual=waiting)
    x = tf.constant([1.0])

    def executable() -> Any:
        return function._cache.traces[0]._executables[((1,),)]

    for _ in range(6):
        assert float(function(x)[0]) == 3
    assert waited == [4]

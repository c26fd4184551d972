"""Conditions whose branches only assign: both are computed where nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.frontend.signature import Arguments
from gtape.trace.subgraph import SubgraphOp


def _steps(run: Any, *args: Any) -> list[str]:
    """The names of the steps in Python that choose in the trace for these arguments."""
    graph = run._cache.find(Arguments(args, {})).traced.graph
    return [node.op.name for node in graph.nodes if isinstance(node.op, SubgraphOp)]


def _states(run: Any, variables: list[Any], calls: list[Any]) -> list[np.ndarray]:
    found = []
    for x in calls:
        run(tf.constant(x))
        found += [v.numpy() for v in variables]
    return found


def _compare(make: Callable[[], tuple[Callable[[Any], Any], list[Any]]], steps: int,
             calls: list[Any] | None = None) -> None:
    """Traced as eagerly, call by call; `steps` choices are left to Python."""
    calls = calls or [1.0, -2.0, np.nan, 3.0]
    fn, variables = make()
    eager = _states(fn, variables, calls)
    fn, variables = make()
    run = tf.function(fn)
    for a, b in zip(_states(run, variables, calls), eager, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(_steps(run, tf.constant(calls[0]))) == steps


def test_assignments_are_chosen_among_values() -> None:
    def make() -> Any:
        v, w, n = tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.Variable(0)

        def fn(x: Any) -> None:
            def yes() -> None:
                v.assign(v * x + w)
                w.assign_add(tf.reduce_sum(v))

            tf.cond(x > 0, yes, lambda: None)
            tf.cond(x < 0, lambda: n.assign_add(1), lambda: n.assign(n * 2 + 1))

        return fn, [v, w, n]

    _compare(make, 0)


def test_a_condition_in_a_branch() -> None:
    def make() -> Any:
        v, n = tf.Variable(1.0), tf.Variable(0)

        def fn(x: Any) -> None:
            def inner() -> None:
                n.assign_add(1)
                tf.cond(tf.equal(n % 2, 0), lambda: v.assign_sub(x, read_value=False),
                        lambda: v.assign(v * 2, read_value=False))

            tf.cond(x > 0, inner, lambda: None)

        return fn, [v, n]

    _compare(make, 0, [1.0, 2.0, -1.0, 3.0])


def test_infinities_of_the_other_branch_do_not_show() -> None:
    def make() -> Any:
        v = tf.Variable([1.0, 0.0])

        def fn(x: Any) -> None:
            tf.cond(tf.math.is_finite(x), lambda: v.assign(v + x, read_value=False),
                    lambda: None)
            tf.cond(x > 0, lambda: v.assign(tf.math.log(v * x), read_value=False),
                    lambda: v.assign(v * 0.5, read_value=False))

        return fn, [v]

    _compare(make, 0, [1.0, -2.0, np.inf, 3.0])


_ONE_ONLY: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "a matrix product": lambda v, x, seen: v.assign(tf.matmul(v, v), read_value=False),
    "random numbers": lambda v, x, seen: v.assign(
        tf.random.stateless_uniform([2, 2], tf.cast([x, x], tf.int32)), read_value=False),
    "Python": lambda v, x, seen: v.assign(tf.numpy_function(
        lambda a: (seen.append(1), a)[1], [v], tf.TensorSpec([2, 2], tf.float32)),
        read_value=False),
    "a check": lambda v, x, seen: (tf.debugging.assert_positive(x),
                                   v.assign(v + x, read_value=False))[1],
    "much more work": lambda v, x, seen: v.assign(
        v + tf.reduce_sum(tf.ones([500, 500]) * x * tf.range(500.0)), read_value=False),
    "a loop": lambda v, x, seen: v.assign(tf.while_loop(
        lambda i, a: i < 3.0 * x, lambda i, a: (i + 1.0, a * 2.0), [0.0, v])[1], read_value=False),
}


@pytest.mark.parametrize("name", _ONE_ONLY)
def test_what_shows_or_is_dear_runs_only_where_it_is_asked_for(name: str) -> None:
    seen: list[Any] = []

    def make() -> Any:
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        return (lambda x: tf.cond(x > 0, lambda: _ONE_ONLY[name](v, x, seen), lambda: None)), [v]

    _compare(make, 1, [1.0, -2.0])
    assert len(seen) in (0, 2)


def test_a_division_by_a_variable_that_is_0_is_not_done() -> None:
    v, by = tf.Variable(7), tf.Variable(0)
    run = tf.function(lambda x: tf.cond(
        x > 0, lambda: v.assign(v // by, read_value=False), lambda: None))
    run(tf.constant(-1.0))
    assert v.numpy() == 7
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.constant(1.0))


def test_gradients_flow_through_results_of_one_branch_only() -> None:
    x = tf.Variable(0.0)
    run = tf.function(lambda: tf.cond(x > 0, lambda: tf.sqrt(x), lambda: x * 2.0))
    with tf.GradientTape() as tape:
        y = run()
    assert tape.gradient(y, x).numpy() == 2.0
    assert _steps(run) == ["cond"]


def test_a_tape_in_the_function_sees_assignments_as_eagerly() -> None:
    def make() -> Any:
        v, out = tf.Variable(3.0), tf.Variable(0.0)

        def fn(x: Any) -> None:
            with tf.GradientTape() as tape:
                before = v * v
                tf.cond(x > 0, lambda: v.assign(v * x, read_value=False), lambda: None)
                after = v * 5.0
            out.assign(tape.gradient([before, after], v))

        return fn, [v, out]

    _compare(make, 0, [2.0, -1.0])


def test_a_variable_keeps_its_shape() -> None:
    v = tf.Variable([1.0], shape=tf.TensorShape([None]))
    run = tf.function(lambda x: tf.cond(
        x > 0, lambda: v.assign([1.0, 2.0], read_value=False), lambda: None))
    with pytest.raises(ValueError, match="must keep its shape"):
        run(tf.constant(1.0))

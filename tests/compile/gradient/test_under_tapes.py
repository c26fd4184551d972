"""Traced functions that tapes record from outside give the gradients that eager code gives."""

from __future__ import annotations

from typing import Any

import pytest

import gtape as tf
from gtape import testing
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.core.op import declared
from gtape.ops import every_module
from tests.compile.programs_under_tapes import (
    ONE_BY_ONE,
    PROGRAMS,
    cross_entropy,
    custom,
    embedding,
    floats,
    mlp,
    nested,
    partly,
    same,
    sources_of,
    watched,
    weights,
)

# ---------------------------------------------------------------------- equal to eager


def _first(make: Any, wrap: Any) -> Any:
    """The results, and the gradients of each, of some and of all by everything; and the state."""
    f, args, more = make()
    f, sources = wrap(f), sources_of(args, more)
    found = []
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            watched(tape, sources)
            made = f(*args)
        ys = floats(made)
        found += [made, [tape.gradient(y, sources) for y in ys], tape.gradient(ys, sources),
                  tape.gradient(ys[-1], sources, weights(ys[-1])),
                  [tape.gradient(ys[0], s) for s in sources]]
    return found, [v.numpy() for v in tape.watched_variables()]


@pytest.mark.parametrize("make", PROGRAMS)
def test_gradients_equal_eager_ones(make, monkeypatch):
    want = _first(make, lambda f: f)
    if make not in ONE_BY_ONE:
        monkeypatch.setattr(ClosedGraph, "apply", _refused(ClosedGraph.apply))
    same(_first(make, tf.function), want)


def _refused(apply: Any) -> Any:
    """`apply`, not for calls that are recorded: those of traces pass."""
    def checked(self: Any, tensors: Any) -> Any:
        assert tf.inside_function(), "applied node by node"
        return apply(self, tensors)

    return checked


def _second(make: Any, wrap: Any) -> Any:
    f, args, more = make()
    f, sources = wrap(f), sources_of(args, more)
    with tf.GradientTape() as outer:
        watched(outer, sources)
        with tf.GradientTape() as tape:
            watched(tape, sources)
            ys = floats(f(*args))
        first = tape.gradient(ys, sources)
        dense = [tf.convert_to_tensor(g) for g in first if g is not None]
        total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in dense])
    return first, outer.gradient(total, sources)


@pytest.mark.parametrize("make", PROGRAMS)
def test_second_derivatives_equal_eager_ones(make):
    same(_second(make, tf.function), _second(make, lambda f: f))


@pytest.mark.parametrize("make", [mlp, cross_entropy, embedding, custom, nested, partly])
def test_jacobians_equal_eager_ones(make):
    def jacobians(wrap):
        f, args, more = make()
        sources = sources_of(args, more)
        with tf.GradientTape(persistent=True) as tape:
            watched(tape, sources)
            ys = floats(wrap(f)(*args))
        return [tape.jacobian(y, sources) for y in ys]

    same(jacobians(tf.function), jacobians(lambda f: f))


def test_forward_accumulators_and_tapes_together():
    f, (x,), (w,) = nested()

    def both(f):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as acc, tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        return acc.jvp(y), tape.gradient(y, [x, w])

    same(both(tf.function(f)), both(f))


# ---------------------------------------------------------------------- every op

every_module()
#: Ops in one function: a compiler takes longest to start.
_TOGETHER = 60
_CASES = [(op, op.cases[0]) for op in declared()
          if op.cases and "float32" in op.cases[0].dtypes and getattr(op, "has_gradient", True)]


def _pulled(f: Any, inputs: list[list[Any]]) -> Any:
    """The gradients of the results of each op by its own inputs, on one tape."""
    at = [[x for x in xs if x.dtype.is_floating] for xs in inputs]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(at)
        made = [floats(ys) for ys in f(inputs)]
    return [tape.gradient(ys, xs, [weights(y) for y in ys]) if ys else None
            for ys, xs in zip(made, at)]


@pytest.mark.parametrize("start", range(0, len(_CASES), _TOGETHER))
def test_the_gradient_of_every_op(start, monkeypatch):
    cases = _CASES[start: start + _TOGETHER]
    drawn = [[tf.convert_to_tensor(a) for a in testing.draw(case, "float32", seed=1)]
             for _, case in cases]

    def f(inputs):
        return [list(testing.call(op, xs, case)) for (op, case), xs in zip(cases, inputs)]

    want = _pulled(f, drawn)
    monkeypatch.setattr(ClosedGraph, "apply", _refused(ClosedGraph.apply))
    for (op, _), a, b in zip(cases, _pulled(tf.function(f, autograph=False), drawn), want):
        try:
            same(a, b)
        except AssertionError as error:
            raise AssertionError(f"{op.name}: {error}") from None

"""Random control flow: converted and traced functions give what the function itself gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.autograph import convert, state
from gtape.core import nest
from gtape.core.spec import Spec
from gtape.trace.graph import Graph
from gtape.trace.tracer import trace
from tests.random_programs import python_text

_X = (-1.0, 0.0, 2.0, 4.0)
_XS = ([0.0, 1.0, 2.0], [3.0, -1.0, 0.5])
_P = (0.0, 3.0)


def _numbers(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf, np.float32) for leaf in nest.flatten(value)]


def _outcome(fn: Callable[..., Any], *args: Any) -> list[np.ndarray] | None:
    """The numbers that a call gives; None where it reads a variable that is not set."""
    try:
        return _numbers(fn(*args))
    except NameError:
        return None


def _alike(a: list[np.ndarray] | None, b: list[np.ndarray] | None) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def _traced(fn: Callable[..., Any], p: float) -> Graph | None:
    """The graph, or None where a variable is not set on every path, which a trace refuses."""
    def flat(x: Any, xs: Any) -> tuple[Any, ...]:
        return tuple(tf.convert_to_tensor(leaf) for leaf in nest.flatten(fn(x, xs, p)))

    try:
        return trace(flat, [Spec((), tf.float32), Spec((3,), tf.float32)])
    except NameError:
        return None
    except ValueError as error:
        assert "must be set" in str(error), error
        return None


def _traced_calls(seed: int) -> int:
    """Compare the traces of a program with the program; how many calls were compared."""
    fn, text = python_text.made(seed)
    compared = 0
    for p in _P:
        graph = _traced(convert(fn), p)
        for x in _X if graph else ():
            for xs in _XS:
                expected = _outcome(fn, tf.constant(x), tf.constant(xs), p)
                got = _numbers(graph(tf.constant(x), tf.constant(xs)))
                assert _alike(got, expected), (seed, x, xs, p, text)
                compared += 1
    return compared


@pytest.mark.parametrize("seed", range(60))
def test_plain_values(seed: int) -> None:
    fn, text = python_text.made(seed)
    converted = convert(fn)
    assert converted is not fn
    for x in _X:
        for xs in _XS:
            for p in _P:
                assert _alike(_outcome(converted, x, xs, p), _outcome(fn, x, xs, p)), text


def test_traced_values() -> None:
    compared = sum(_traced_calls(seed) for seed in range(60))
    assert compared > 0.6 * 60 * len(_X) * len(_XS) * len(_P)


def test_a_branch_that_sees_what_the_other_one_did_is_found(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.Snapshot, "restore", lambda self: None)
    with pytest.raises((AssertionError, TypeError)):
        for seed in range(60):
            _traced_calls(seed)

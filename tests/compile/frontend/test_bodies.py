"""Loop bodies that run often become programs; their numbers stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile import subgraph_programs
from gtape.trace import subgraph as applied

pytestmark = pytest.mark.native(required=False)


def test_a_long_loop_is_compiled_on_the_way(monkeypatch: Any) -> None:
    compiled: list[Any] = []
    made = subgraph_programs.pure

    def counting(*graph: Any) -> Any:
        compiled.append(graph)
        return made(*graph)

    monkeypatch.setattr(subgraph_programs, "pure", counting)

    def loop(x: Any, turns: Any) -> Any:
        return tf.while_loop(lambda i, y: i < turns,
                             lambda i, y: (i + 1, y * 0.99 + tf.tanh(y) * 0.01),
                             (tf.constant(0), x))[1]

    x = tf.constant([0.5, -1.0, 2.0])
    turns = tf.constant(700)
    got = tf.function(loop)(x, turns)
    assert len(compiled) == 2  # the condition and the body
    np.testing.assert_allclose(got, loop(x, turns), rtol=1e-4)


def test_short_loops_stay_as_they_are() -> None:
    assert applied.subgraph_compiler is subgraph_programs.compiled_when_often
    few = tf.function(lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 10.0,
                                              lambda y: (y * 2.0,), (x,))[0])
    np.testing.assert_allclose(few(tf.constant([1.0])), [16.0])

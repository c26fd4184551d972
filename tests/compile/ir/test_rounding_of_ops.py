"""Every elementwise operation in float16 and bfloat16, with its gradients, at all pairs of edges:
with every step rounded a compiled program gives what eager code gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import compile_closed
from gtape.compile.ir.rounding import exact
from gtape.core.op import declared
from gtape.opdef.elementwise import Elementwise, ScalarFunction, ScalarOp
from gtape.ops import every_module
from tests.compile.agreement import flat, trace_of

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
_TYPES = ("number", "product", "real", "float", "real_float", "any", "compare", "equal", "test",
          "select")
_EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 6e-8, 1e-6,
          65504.0, -65504.0, 300.0, -7.3]


@pytest.fixture
def every_step() -> Iterator[None]:
    """Every step is rounded."""
    tf.config.experimental.enable_excess_precision(False)
    yield
    tf.config.experimental.enable_excess_precision(True)


def _results(op: Elementwise, given: list[Any]) -> list[Any]:
    """The op's value, and its gradients."""
    x, y, z = given
    args = [x > y, x, z] if op.types == "select" else given[: len(op.params)]
    floats = [a for a in args if a.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        made = op.apply(args)
    gradients = tape.gradient(made, floats) if made.dtype.is_floating and op.has_gradient else []
    return [made, *(g for g in gradients if g is not None)]


@pytest.mark.parametrize("half", [tf.float16, tf.bfloat16], ids=lambda d: d.name)
def test_ops_that_run_natively_have_the_numbers_of_eager_ones(half: Any, every_step: None) -> None:
    every_module()
    ops = [op for op in declared() if isinstance(op, (ScalarOp, ScalarFunction))
           and op.types in _TYPES and exact(op.body(), [half.name])]
    assert len(ops) > 25
    a, b = (v.ravel() for v in np.meshgrid(_EDGES, _EDGES))
    given = [tf.constant(v, half) for v in (a, b, np.roll(a, 7))]

    def every(*xs: Any) -> Any:
        return [_results(op, list(xs)) for op in ops]

    names = [f"{op.name} {i}" for op, made in zip(ops, every(*given)) for i in range(len(made))]
    trace = trace_of(every, *given)
    got = flat(trace.packed(compile_closed(trace).run(given)))
    for name, found, want in zip(names, got, flat(every(*given))):
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64), name)


def test_division_towards_zero_of_bfloat16() -> None:
    """trunc(x / y), as of the other floats."""
    x = tf.constant([np.inf, 7.0, -7.0, 1.0], tf.bfloat16)
    made = tf.truncatediv(x, tf.constant([0.0, 2.0, 2.0, 0.0], tf.bfloat16))
    np.testing.assert_array_equal(np.asarray(made).astype(np.float32), [np.inf, 3, -3, np.inf])

"""Every declared op in a compiled program: results and gradients equal the eager ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import trace_closed
from gtape.core.convert import convert
from gtape.core.op import Case, Op
from gtape.core.tensor import Tensor
from gtape.ops import every_module
from gtape.trace.tracer import Tracer

pytestmark = pytest.mark.native
every_module()

Item = tuple[Op, Case, str]
#: Cases compiled into one program: a compiler takes longest to start.
_TOGETHER = 80


def _items() -> list[Item]:
    return [(op, case, dtype) for op, case in testing.declared() for dtype in case.dtypes
            if dtype in ("float32", "float64", "int32", "bool")]


def _chunks() -> list[list[Item]]:
    items = _items()
    return [items[i: i + _TOGETHER] for i in range(0, len(items), _TOGETHER)]


def _gradients(op: Op, case: Case, inputs: Sequence[Tensor]) -> list[Any]:
    """The results, and the gradient of a weighted sum of them by every input."""
    at = [x for x in inputs if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(at)
        results = testing.call(op, inputs, case)
        floats = [r for r in results if r.dtype.is_floating]
        weights = [tf.cos(tf.cast(tf.reshape(tf.range(np.prod(r.spec.shape, dtype=int)), r.shape),
                                  r.dtype)) for r in floats]
        terms = [tf.reduce_sum(r * w) for r, w in zip(floats, weights)]
    if not at or not terms:
        return list(results)
    try:
        found = tape.gradient(terms, at)
    except LookupError:
        return list(results)
    return [*results, *(f.to_dense() if hasattr(f, "to_dense") else f for f in found)]


def _flat(items: Sequence[Item], inputs: Sequence[Sequence[Tensor]]) -> list[list[Any]]:
    return [_gradients(op, case, xs) for (op, case, _), xs in zip(items, inputs)]


def _same(got: Any, want: Any, name: str) -> None:
    if want is None or got is None:
        assert got is None and want is None, name
        return
    a, b = np.asarray(got), np.asarray(want)
    assert a.dtype == b.dtype and a.shape == b.shape, name
    step = {"float32": 2e-5, "float64": 1e-11, "complex64": 2e-5}.get(a.dtype.name, 1e-11)
    np.testing.assert_allclose(a, b, rtol=step, atol=step, err_msg=name)


@pytest.mark.parametrize("at", range(len(_chunks())))
def test_compiled_equals_eager(at: int) -> None:
    items = _chunks()[at]
    drawn = [[convert(a) for a in testing.draw(case, dtype, seed=1)] for _, case, dtype in items]
    tracer = Tracer()
    symbols = [[tracer.symbol(x.spec, x._t) for x in xs] for xs in drawn]
    program = trace_closed(lambda: _flat(items, symbols), tracer, [s for xs in symbols for s in xs],
                           "every op")
    got = program.packed(compile_closed(program).run([x for xs in drawn for x in xs]))
    for (op, case, dtype), ours, theirs in zip(items, got, _flat(items, drawn)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            _same(a, b, f"{op.name} {case} {dtype}")

"""Programs of NumPy's functions: equal to eager, in every way of running them."""

from __future__ import annotations

import pytest

import gtape as tf
from gtape.compile.numpy_program import NumpyProgram
from gtape.compile.traced import traced
from gtape.core.convert import convert
from gtape.core.tracer import Tracer
from gtape import testing
from tests.compile import test_every_op as every


@pytest.mark.parametrize("at", range(len(every._chunks())))
def test_every_op(at):
    items = every._chunks()[at]
    for item in items:
        drawn = [[convert(a) for a in testing.draw(case, dtype, seed=1)] for _, case, dtype in [item]]
        tracer = Tracer()
        symbols = [[tracer.symbol(x.spec, x._t) for x in xs] for xs in drawn]
        program = traced(lambda: every._flat([item], symbols), tracer, [s for xs in symbols for s in xs],
                     "every op")
        got = program.packed(NumpyProgram(program, "test").run([x for xs in drawn for x in xs]))
        for (op, case, dtype), ours, theirs in zip([item], got, every._flat([item], drawn)):
            assert len(ours) == len(theirs)
            for a, b in zip(ours, theirs):
                every._same(a, b, f"{op.name} {case} {dtype}")

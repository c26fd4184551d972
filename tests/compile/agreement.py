"""Functions and the Variables they write, compared in every way of running them."""

import numpy as np

import gtape as tf
from gtape.compile.cpp.program import NativeProgram, compile_closed
from gtape.compile.frontend.closed_graph import ClosedGraph, trace_closed
from gtape.core.convert import convert
from gtape.trace.tracer import Tracer


def trace_of(fn, *args) -> ClosedGraph:
    """One trace of `fn` for tensors like `args`."""
    tracer = Tracer()
    symbols = [tracer.symbol(x.spec, x._t) for x in map(convert, args)]
    return trace_closed(lambda: fn(*symbols), tracer, symbols, "program")


def flat(results):
    return [None if r is None else np.asarray(r) for r in tf.nest.flatten(results)]


def same(got, want, tolerance, signs=False):
    """Equal dtypes, shapes and values; with `signs`, those of zeros too."""
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want)):
        if b is None:
            assert a is None
            continue
        assert a.dtype == b.dtype and a.shape == b.shape, i
        if a.dtype.kind == "V" or (tolerance and a.dtype.kind not in "biu"):
            a, b = a.astype(np.float64), b.astype(np.float64)
        if tolerance and a.dtype.kind not in "biu":
            np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=f"result {i}")
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"result {i}")
        if signs:
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=f"result {i}")


def agree(fn, *args, variables=(), calls=1, tolerance=1e-6, signs=False, ways=(True, False)):
    """That `fn` gives compiled, fused and not, what it gives eagerly, and leaves the same state."""
    inputs = [convert(a) for a in args]
    starts = [v.numpy() for v in variables]
    with np.errstate(all="ignore"):
        want = [flat(fn(*inputs)) for _ in range(calls)]
    after = [v.numpy() for v in variables]
    for fuse in ways:
        for v, start in zip(variables, starts):
            v.assign(start)
        program = compile_closed(trace_of(fn, *inputs), fuse=fuse)
        assert isinstance(program, NativeProgram)
        for each in want:
            same(flat(program.entry(*inputs)), each, tolerance, signs)
        same([v.numpy() for v in variables], after, tolerance)
    return program

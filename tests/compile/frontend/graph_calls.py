"""Traced calls without a compiler: what a function's graph computes, node by node."""

from gtape.compile.frontend.closed_graph import trace_closed
from gtape.core.convert import convert
from gtape.trace.tracer import Tracer


def trace_of(fn, *args):
    """One trace of `fn` for tensors like `args`."""
    tracer = Tracer()
    symbols = [tracer.symbol(x.spec, x._t) for x in map(convert, args)]
    return trace_closed(lambda: fn(*symbols), tracer, symbols, getattr(fn, "__name__", "f"))


def as_graph(fn):
    """`fn`, traced at its first call and replayed from then on; shapes must not change."""
    made = []

    def call(*args):
        if not made:
            made.append(trace_of(fn, *args))
        return made[0].apply([convert(x) for x in args])

    return call

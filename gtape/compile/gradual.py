"""Gradual: a trace that nobody asked for runs node by node, and as a program once that pays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Thread
from typing import Any

from gtape.compile.pace import applying_seconds, compiling_seconds
from gtape.compile.program import prepared
from gtape.compile.traced import Traced

#: The calls at which compiling begins, and from which the program runs.
COMPILED, NATIVE = 10, 100
#: The same of a step that is known to be repeated: the first is `fit`'s, whose last batch has a
#: shape of its own, and the second depends on what the nodes cost.
BEGIN, MOST = 2, 1000


class Gradual:
    """`run(*tensors)` gives the result of a trace.

    Node by node it is what the Python code gave, bit for bit. The program, whose last digits may
    differ, is compiled meanwhile, and takes over at a call that does not depend on how long that
    took: the same script gives the same numbers again.
    """

    __slots__ = ("_begin", "_calls", "_done", "_made", "_native", "_thread", "_traced", "run")

    def __init__(self, traced: Traced, begin: int | None = None, native: int | None = None,
                 done: Callable[[Any], None] | None = None) -> None:
        self._traced = traced
        self._done = done
        self._begin = COMPILED if begin is None else begin
        self._native = NATIVE if native is None else native
        self._calls = 0
        self._thread: Thread | None = None
        self._made: list[Callable[[], Any]] = []
        self.run: Callable[..., Any] = self._early

    def _early(self, *tensors: Any) -> Any:
        self._calls += 1
        if self._calls == self._begin:
            self._thread = Thread(target=copy_context().run, args=(self._compile,), daemon=True,
                                  name=f"{__name__}")
            self._thread.start()
        if self._calls < self._native:
            return self._traced.apply(tensors)
        if self._thread is not None:
            self._thread.join()
        # A thread that failed, or was left behind by a fork: here it says why.
        make = self._made[0] if self._made else prepared(self._traced)
        program = make()
        self.run = program.entry
        if self._done is not None:
            self._done(program)
        return self.run(*tensors)

    def _compile(self) -> None:
        try:
            self._made.append(prepared(self._traced))
        except Exception:
            return


def of_step(traced: Traced, done: Callable[[Any], None]) -> Gradual:
    """What runs a step that is repeated: node by node for about as long as compiling takes, so that
    no more than twice the time of the better way is spent, and the first steps are done at once."""
    graph = traced.graph
    calls = int(compiling_seconds(graph) / applying_seconds(graph)) if graph.nodes else 0
    return Gradual(traced, BEGIN, min(max(calls, BEGIN + 1), MOST), done)


def traced_once(fn: Callable[..., None], tensors: Sequence[Any]) -> Traced | None:
    """The trace of a function that worked without one; None where there is none, or where it serves
    one call only."""
    from gtape.compile.executable import Executable
    from gtape.compile.function import Function
    from gtape.compile.signature import Arguments

    arguments = Arguments(tuple(tensors), {})
    function = Function(functools.partial(fn), autograph=False)
    try:
        made = function._cache._run(arguments, arguments.shapes)
    except Exception:
        return None
    return made if not made.created and Executable(made).lasts() else None

"""GradualProgram: a trace runs at once by NumPy, and as a native program once that pays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Any

from gtape.compile.compile_cost import compiling_seconds, numpy_seconds
from gtape.compile.cpp.program import prepare
from gtape.compile.frontend.closed_graph import ClosedGraph, CompiledProgram
from gtape.compile.launches import never
from gtape.compile.numpy.program import NumpyProgram
from gtape.devices.cpu import toolchain
from gtape.devices.cpu.cores import leaving_a_core

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor

#: The calls at which compiling begins, and from which the program runs.
#: Fixed, and not what a clock says: at which call the last digits change must not depend on how
#: busy the machine is.
COMPILED, NATIVE = 10, 100
#: The call from which the program of a step runs, at the latest.
MOST = 1000

#: Gives the context in which a call waits for the compiler.
Waiting = Callable[[], AbstractContextManager[Any]]


class GradualProgram:
    """`run(*tensors)` gives the result of a trace.

    The native program, whose last digits may differ, is compiled meanwhile, and takes over at a
    call that does not depend on how long that took: the same script gives the same numbers again.

    Args:
        early: what runs before; node by node, what the Python code gave, bit for bit.
        begin: the call at which compiling begins; `native`: from which the program runs.
        done: is told the program.
        waiting: gives the context in which that call waits for the compiler.
    """

    __slots__ = ("_begin", "_calls", "_done", "_early", "_made", "_native", "_thread", "_traced",
                 "_waiting", "run")

    def __init__(self, traced: ClosedGraph, early: Callable[..., object] | None = None,
                 begin: int | None = None, native: int | None = None,
                 done: Callable[[CompiledProgram], None] | None = None,
                 waiting: Waiting = nullcontext) -> None:
        self._traced = traced
        self._early = early or (lambda *tensors: traced.apply(tensors))
        self._waiting = waiting
        self._done = done
        self._begin = COMPILED if begin is None else begin
        self._native = NATIVE if native is None else native
        self._calls = 0
        self._thread: Thread | None = None
        self._made: list[Callable[[], CompiledProgram]] = []
        self.run: Callable[..., Any] = self._counted

    def _counted(self, *tensors: Tensor) -> Any:
        self._calls += 1
        if self._calls == self._begin:
            self._thread = Thread(target=copy_context().run, args=(self._compile,), daemon=True,
                                  name=f"{__name__}")
            self._thread.start()
        if self._calls < self._native:
            return self._early(*tensors)
        if self._thread is not None:
            with self._waiting():
                self._thread.join()
        # A thread that failed, or was left behind by a fork: here it says why.
        make = self._made[0] if self._made else prepare(self._traced)
        program = make()
        self.run = program.entry
        if self._done is not None:
            self._done(program)
        return self.run(*tensors)

    def _compile(self) -> None:
        try:
            self._made.append(prepare(self._traced))
        except Exception:
            return


def native(traced: ClosedGraph) -> bool:
    """Whether a native program may be made of a trace."""
    return not never(traced) and not toolchain.switched_off()


def of_step(traced: ClosedGraph, done: Callable[[CompiledProgram], None],
            waiting: Waiting) -> GradualProgram:
    """What runs a step that is repeated: by NumPy for about as long as compiling takes, so that the
    first steps are done at once, and little more than twice the time of the better way is spent.

    Compiling begins halfway: it takes a part of the machine from the steps beside it, and the last
    batch of an epoch, which has a shape of its own, may never come so far.
    """
    graph = traced.graph
    calls = int(compiling_seconds(graph) / numpy_seconds(graph)) if graph.nodes else 0
    native = min(max(calls, 3), MOST)
    early = leaving_a_core(NumpyProgram(traced, "it is being compiled").entry)
    return GradualProgram(traced, early, native // 2 + 1, native, done, waiting)

"""Executable: a trace for one set of shapes, and the program that computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.frontend.closed_graph import ClosedGraph, CompiledProgram
from gtape.core.context import tracer_now
from gtape.core.variable import ResourceVariable

#: How often a trace for rare shapes is applied node by node before a program is worth its making.
#: To compile takes about a second (see `compile_cost`), which most of such shapes never earn back.
_RARE_CALLS = 100


class Executable:
    """What a call of a traced function runs. `calls` counts how often it was used.

    Args:
        traced: the trace.
        rare: the shapes are some of many, as those of sparse and ragged values are.
        gradual: the program takes over after a while, and is compiled meanwhile; gives the context
            in which a call waits for it.
    """

    __slots__ = ("_flexible", "_recorded", "calls", "entry", "gradual", "program", "rare",
                 "tensors_only", "traced")

    def __init__(self, traced: ClosedGraph, rare: bool = False, gradual: Any = None) -> None:
        self.traced = traced
        self.calls = 0
        self.rare = rare
        self.gradual = gradual
        self.program: CompiledProgram | None = None
        #: The function of the program, or what runs before there is one.
        self.entry: Any = None
        self._recorded: Any = None
        #: Whether the arguments of the calls that it is found by at once are all tensors.
        self.tensors_only = False
        #: States whose shape may change, and the spec that they are traced with.
        self._flexible = [(use.ref, use.start.spec) for use in traced.states
                          if isinstance(use.ref, ResourceVariable)
                          and use.ref._declared is not None
                          and not use.ref._declared.is_fully_defined()]

    def lasts(self) -> bool:
        """Whether it stays right, whatever is assigned to variables meanwhile."""
        return not self._flexible and not self.traced.captured

    def fits(self) -> bool:
        """Whether the variables have the shapes now that it was traced with."""
        if not self._flexible:
            return True
        tracer = tracer_now()
        states = [(state._resource_(), spec) for state, spec in self._flexible]
        return all((state._initial_() if tracer is None else tracer.use(state).present).spec == spec
                   for state, spec in states)

    def result(self, tensors: Sequence[Any]) -> Any:
        """The result of a call that nobody records."""
        if self.entry is None:
            if self.rare and self.calls < _RARE_CALLS:
                return self.traced.apply(tensors)
            if self.gradual is not None:
                self._begin()
            else:
                self.compile()
        return self.entry(*tensors)

    def _begin(self) -> None:
        """Compute by NumPy while the program is compiled, where that takes its time."""
        from gtape.compile import gradual

        if gradual.native(self.traced):
            self.entry = gradual.of_step(self.traced, self._take_over, self.gradual).run
        else:
            self.compile()

    def _take_over(self, program: CompiledProgram) -> None:
        self.program, self.entry = program, program.entry

    def recorded(self, tensors: Sequence[Any], name: str) -> Any:
        """The result of a call of the function `name` that recorders look on."""
        if self._recorded is None:
            from gtape.compile.gradient.tape_record import Differentiable

            self._recorded = Differentiable(self.traced, self.result, name)
        return self._recorded(tensors)

    def compile(self) -> CompiledProgram:
        """Make the program, where there is none yet."""
        if self.program is None:
            from gtape.compile.cpp.program import compile_closed

            program = compile_closed(self.traced)
            # First: another thread asks whether there is a program, and then calls the entry.
            self.entry = program.entry
            self.program = program
        return self.program

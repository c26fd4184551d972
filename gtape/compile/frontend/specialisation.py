"""Specialisation: one trace as its user counts them, with a program for every set of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.frontend.executable import Executable
from gtape.compile.frontend.retrace_log import RetraceEntry
from gtape.compile.frontend.shape_polymorphism import PolymorphicGraph, alike, open_axes
from gtape.compile.frontend.signature import Arguments
from gtape.core.spec import TensorShape
from gtape.core.symbolic_dim import ConcreteDimNeeded
from gtape.core.type_specs import TensorSpec

#: Gives the trace of a Python function for shapes.
Run = Callable[[Sequence[Any]], ClosedGraph]


class Specialisation:
    """What a pattern of arguments is traced for. `specs` has the shapes that it serves."""

    #: How often the Python function may be traced for open lengths.
    #: Each runs the Python function once more. Guards differ where branches depend on lengths; with
    #: more branches than this, a trace for each set of lengths is what the user gets.
    _ATTEMPTS = 3

    __slots__ = ("_executables", "_refused", "_templates", "entry", "gradual", "pattern", "rare",
                 "specs")

    def __init__(self, pattern: Any, specs: Sequence[TensorSpec], entry: RetraceEntry,
                 rare: bool = False, gradual: object = None) -> None:
        self.pattern = pattern
        self.gradual = gradual
        self.rare = rare
        self.specs = tuple(specs)
        self.entry = entry
        self._executables: dict[Any, Executable] = {}
        self._templates: list[PolymorphicGraph] = []
        self._refused = False

    @property
    def open(self) -> bool:
        """Whether it serves more than one shape."""
        return not all(s.shape.is_fully_defined() for s in self.specs)

    @property
    def calls(self) -> int:
        return sum(e.calls for e in self._executables.values())

    def accepts(self, arguments: Arguments) -> bool:
        """Whether it serves these arguments, which may be specs themselves."""
        return self.pattern == arguments.pattern and all(
            _within(dims, spec.shape) for dims, spec in zip(arguments.shapes, self.specs))

    def executable(self, shapes: tuple[Any, ...], run: Run) -> Executable:
        """The executable for these shapes; `run` runs the Python function."""
        executable = self._executables.get(shapes)
        if executable is None or not executable.fits():
            executable = Executable(self._resized(shapes, run) or run(shapes), self.rare,
                                    self.gradual)
            # Captured values are those of one trace around the call, and the next has others.
            if not executable.traced.captured:
                self._executables[shapes] = executable
        return executable

    def _resized(self, shapes: tuple[tuple[int, ...], ...], run: Run) -> ClosedGraph | None:
        """The trace for these shapes from one for open lengths, where that can be had."""
        axes = open_axes(shapes, self.specs)
        if not axes:
            return None
        serving = [t for t in self._templates if list(t.open_axes) == axes]
        for template in serving:
            closed = template.at(shapes)
            if closed is not None:
                return closed
        # There is one for lengths that are equal in the same places, whose guards these do not
        # meet: a second would have the same.
        if any(t.alike == alike(shapes, axes) for t in serving):
            return None
        new = self._template(shapes, axes, run)
        return None if new is None else new.at(shapes)

    def _template(self, shapes: Sequence[object], axes: Sequence[tuple[int, int]], run: Run,
                  ) -> PolymorphicGraph | None:
        if self._refused or len(self._templates) == self._ATTEMPTS:
            return None
        try:
            template = PolymorphicGraph(shapes, axes, run)
        except (Exception, ConcreteDimNeeded):
            # With the lengths of the call the function is right, or says itself what is wrong.
            self._refused = True
            return None
        self._templates.append(template)
        return template

    def general(self, run: Run) -> ClosedGraph | None:
        """The trace for lengths that no call has given yet, where there can be one."""
        shapes = [s.shape.dims for s in self.specs]
        if None in shapes:
            return None
        if not self._templates:
            self._template(shapes, open_axes(shapes, self.specs), run)
        return self._templates[0].traced if self._templates else None


def _within(dims: tuple[int | None, ...] | None, shape: TensorShape) -> bool:
    if shape.dims is None:
        return True
    return dims is not None and len(dims) == len(shape.dims) and all(
        b is None or a == b for a, b in zip(dims, shape.dims))

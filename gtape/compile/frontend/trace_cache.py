"""The traces of one function: found by the arguments of a call, made where there is none.

A `Specialisation` is a trace as its user counts them, with an `Executable` for every set of sizes:
the trace for these, and the program that computes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.frontend import retrace_log
from gtape.compile.frontend.closed_graph import ClosedGraph, CompiledProgram, trace_closed
from gtape.compile.frontend.iterator_arguments import IteratorArgument
from gtape.compile.frontend.retrace_log import RetraceEntry
from gtape.compile.frontend.shape_polymorphism import PolymorphicGraph, alike, open_axes
from gtape.compile.frontend.signature import Arguments, Binding, ObjectKey, specs_of
from gtape.core.context import here, paused, stack_level, tracer_now
from gtape.core.errors import EagerFunctionWarning, NotTraceableError, RetraceWarning
from gtape.core.locks import lock, trace_lock
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import ConcreteDimNeeded, SymbolicDim, comparable, is_open
from gtape.core.type_specs import TensorSpec
from gtape.core.variable import ResourceVariable
from gtape.ops.control.branches import check_premises
from gtape.trace.tracer import Tracer

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


_LATE = ("a Variable may be created only in the first call of a tf.function, and this is a later "
         "one, or the function creates one in every call. Create it outside, or keep it: "
         "`if self.v is None: self.v = tf.Variable(...)`")


class TraceCache:
    """The traces of a function.

    Args:
        binding: of the function.
        body: gives the Python function to trace.
        reduce_retracing: whether lengths that change are left open.
        gradual: of its executables.
    """

    def __init__(self, binding: Binding, body: Callable[[], Callable[..., Any]],
                 reduce_retracing: bool, gradual: Any = None) -> None:
        self.name = binding.name
        self._gradual = gradual
        self._binding, self._body, self._reduce = binding, body, reduce_retracing
        self._lock = lock()
        self.traces: list[Specialisation] = []
        #: How many there were, those of objects that are gone included.
        self._count = 0
        #: By key; None: these arguments cannot be traced, and the Python function runs.
        self._executables: dict[Any, Executable | None] = {}
        #: Patterns and specs that cannot be traced whatever the open lengths are.
        self._untraceable: set[Any] = set()
        self._dead: list[ObjectKey] = []
        self._watch = retrace_log.RetraceWatch()
        self._traced_before = False

    # ------------------------------------------------------------------ finding

    def find(self, arguments: Arguments) -> Executable | None:
        """What to run for these arguments, traced if need be; None: the Python function."""
        key = arguments.key
        missing: Any = self
        tracer = tracer_now()
        if tracer is not None:
            if any(map(is_open, arguments.shapes)):
                return self._inlined(arguments)
            # A trace that captured values of the one around it is of use in that one alone.
            if (self, key) in tracer.inlined:
                return tracer.inlined[self, key]
        # Without the lock, which traces hold for seconds; it is looked for again inside, since
        # another thread may have made it meanwhile.
        executable = self._executables.get(key, missing)
        if executable is None or (executable is not missing and executable.fits()):
            return executable
        with trace_lock(self._lock):
            executable = self._executables.get(key, missing)
            if executable is None or (executable is not missing and executable.fits()):
                return executable
            return self._make(arguments, tracer)

    def prepare(self, arguments: Arguments) -> ClosedGraph | None:
        """The trace for arguments that may be specs, made before any call, if there can be one."""
        if all(dims is not None and None not in dims for dims in arguments.shapes):
            executable = self.find(arguments)
            return None if executable is None else executable.traced
        with trace_lock(self._lock):
            trace = self._trace(arguments)
            closed = trace.general(lambda shapes: self._run(arguments, shapes))
            self._add(trace)
            return closed

    # ------------------------------------------------------------------ making

    def _make(self, arguments: Arguments, tracer: Tracer | None) -> Executable | None:
        """Trace for these arguments, and remember it."""
        self._purge()
        trace = self._trace(arguments)
        kind = (arguments.pattern, tuple(trace.specs))
        if kind in self._untraceable and tracer is None:
            self._executables[arguments.key] = None
            return None
        try:
            executable = trace.executable(
                arguments.shapes, lambda shapes: self._run(arguments, shapes))
        except NotTraceableError as error:
            if tracer is not None:
                raise
            warnings.warn(f"{self.name} runs eagerly: {error}", EagerFunctionWarning,
                          stacklevel=stack_level())
            self._untraceable.add(kind)
            self._executables[arguments.key] = None
            return None
        self._add(trace)
        if tracer is not None and executable.traced.captured:
            tracer.inlined[self, arguments.key] = executable
        else:
            self._executables[arguments.key] = executable
            for part in arguments.pattern:
                if isinstance(part, ObjectKey):
                    part.watchers.add(self)
        return executable

    def _inlined(self, arguments: Arguments) -> Executable:
        """The executable for open lengths of the trace around the call: of use only there."""
        inlined = tracer_now().inlined
        key = (self, arguments.pattern, tuple(map(comparable, arguments.shapes)))
        if key not in inlined:
            inlined[key] = Executable(self._run(arguments, arguments.shapes))
        return inlined[key]

    def _trace(self, arguments: Arguments) -> Specialisation:
        """The trace that serves these arguments: one that there is, or a new one."""
        for trace in self.traces:
            if trace.accepts(arguments):
                return trace
        names = self._binding.names(len(arguments.args))
        specs = arguments.specs()
        rare = bool(arguments.composites())
        if self._binding.input_signature is not None:
            specs = specs_of(self._binding.input_signature)
        elif self._reduce:
            specs = self._widened(arguments.pattern, specs)
        entry = retrace_log.RetraceEntry(retrace_log.note_leaves(names, arguments), *here())
        return Specialisation(arguments.pattern, specs, entry, rare, self._gradual)

    def _widened(self, pattern: Any, specs: list[TensorSpec]) -> list[TensorSpec]:
        """The specs joined with those of every trace of the same pattern."""
        for trace in self.traces:
            if trace.pattern == pattern:
                joined = [s.most_specific_common_supertype([t])
                          for s, t in zip(specs, trace.specs)]
                specs = [s for s in joined if s is not None]
        return specs

    def _add(self, trace: Specialisation) -> None:
        """Keep a trace; warn where it is one of many new ones."""
        if trace in self.traces:
            return
        self._count += 1
        trace.entry.number = self._count
        trace.entry.compare([t.entry for t in self.traces])
        self.traces.append(trace)
        if trace.entry.changes and self._watch.often(sum(t.calls for t in self.traces)):
            warnings.warn(retrace_log.warning(self.name, trace.entry), RetraceWarning,
                          stacklevel=stack_level())

    # ------------------------------------------------------------------ tracing

    def _run(self, arguments: Arguments, shapes: Sequence[tuple[int | SymbolicDim, ...]],
             ) -> ClosedGraph:
        """Run the Python function on symbols. After a first time that creates Variables, again."""
        closed = self._run_once(arguments, shapes, _LATE if self._traced_before else None)
        # As in TensorFlow: the first trace made Variables, which later calls find, so that their
        # code is another (`if self.v is None`). The trace to keep is one of those.
        if closed.created and not self._traced_before:
            closed = self._run_once(arguments, shapes, _LATE)
        self._traced_before = True
        return closed

    def _run_once(self, arguments: Arguments, shapes: Sequence[Any], no_creation: str | None,
                  ) -> ClosedGraph:
        tracer = Tracer(tracer_now(), own_states=True)
        tracer.no_creation = no_creation
        # The elements of an iterator are gone from it when the call begins.
        tracer.replaceable = not any(isinstance(a, IteratorArgument) for a in arguments.args)
        tracer.origin = (self, arguments.pattern, tuple(map(comparable, shapes)))
        outer = tracer.outer
        while outer is not None:
            if outer.origin == tracer.origin:
                raise RecursionError(
                    f"{self.name} calls itself with arguments of the same shapes and dtypes, so "
                    f"tracing it would never end. Use tf.while_loop, or let a Python number say "
                    f"when to stop")
            outer = outer.outer
        symbols = [tracer.symbol(Spec(tuple(dims), t.dtype), getattr(t, "_t", None))
                   for dims, t in zip(shapes, arguments.tensors)]
        args, kwargs = arguments.replaced(symbols)
        body = self._body()
        with paused():
            closed = trace_closed(lambda: body(*args, **kwargs), tracer, symbols, self.name)
        if tracer.outer is None:
            check_premises(closed.graph, tracer.replaceable)
        closed.loosen({id(p.target) for p in arguments.pattern if isinstance(p, ObjectKey)})
        return closed

    # ------------------------------------------------------------------ forgetting

    def forget(self, gone: ObjectKey) -> None:
        """An object is no more: no call can mean it again."""
        # Called by a finalizer, at any moment and in any thread: it takes no lock, and an append is
        # one step.
        self._dead.append(gone)

    def _purge(self) -> None:
        while self._dead:
            gone = self._dead.pop()
            for key in [k for k in list(self._executables) if gone in k[0]]:
                self._executables.pop(key, None)
            self.traces = [t for t in self.traces if gone not in t.pattern]

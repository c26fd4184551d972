"""ClosedGraph: a traced Python function: a graph, the state it touches, its results."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gtape.autodiff.backward import lookup
from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import active
from gtape.core.convert import convert
from gtape.core.formatting import shown
from gtape.core.recording import Record
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.shape.identity import identity_
from gtape.trace.graph import Graph, Node
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import StateUse, Tracer

#: How deep a result may nest: it is written down in Python, whose parser has a limit.
_DEEPEST = 80
#: Ops by which a state's new value is cut from its past.
_CUTS = frozenset(("stop_gradient_", "assigned_"))

#: Called with every trace of a Python function, when it is made.
listeners: list[Callable[[ClosedGraph], object]] = []


class ClosedGraph:
    """A graph whose inputs are the arguments, then what it captured, then its states' values; and
    whose outputs are the results, then the new values of the states it writes.

    `structure` is the result with a number in place of every tensor, None left as it is.
    """

    __slots__ = ("arguments", "borrowed", "captured", "created", "graph", "results", "shared",
                 "states", "structure", "written")

    def __init__(self, arguments: Sequence[SymbolicTensor], tracer: Tracer,
                 results: Sequence[Tensor], structure: object) -> None:
        self.arguments = tuple(arguments)
        self.captured = [outer for outer, _ in tracer.captures.values()]
        uses = list(tracer.states.values())
        self.written = [use for use in uses if use.written]
        self.created = tracer.created
        self.results = len(results)
        self.structure = structure
        #: The ids of tensors that another program computes again, or reads.
        self.shared: frozenset[int] = frozenset()
        outputs = (*results, *_settled(tracer, self.written))
        graph = Graph((), tuple(tracer.nodes), outputs).live()
        read = {id(v) for v in outputs} | {id(v) for node in graph.nodes for v in node.inputs}
        #: Those that matter: only the dtype of a state may have been asked for.
        self.states: list[StateUse] = [u for u in uses if u.written or id(u.start) in read]
        inner = [symbol for _, symbol in tracer.captures.values()]
        inputs = (*arguments, *inner, *(use.start for use in self.states))
        self.graph = Graph(inputs, graph.nodes, outputs)  # type: ignore[arg-type]
        computed = {id(v) for node in graph.nodes for v in node.outputs}
        #: Places of the results that are no values of their own: arguments, constants, one twice.
        self.borrowed = frozenset(i for i, v in enumerate(results)
                                  if id(v) not in computed or any(v is w for w in results[:i]))

    def loosen(self, given: set[int]) -> None:
        """Hold the states with these ids weakly: they are arguments, which every call holds, and
        the trace has to go when they go."""
        for use in {id(use): use for use in (*self.states, *self.written)}.values():
            if id(use.ref) in given:
                use.ref = weakref.proxy(use.ref)

    def packed(self, results: Sequence[Any]) -> Any:
        """The result of a call, from its tensors."""
        if type(self.structure) is int:
            return results[0]
        return nest.map_structure(
            lambda at: results[at] if type(at) is int else _rebuilt(at, results), self.structure)

    def apply(self, arguments: Sequence[Tensor]) -> Any:
        """The result, by applying the nodes one by one: recorded by tapes, inlined by traces."""
        # What the call adds to each tape begins here.
        # Only those: what was recorded before is not this call's to refuse.
        tapes = [(r, len(r._records)) for r in active() if r.is_tape]
        values = [use.ref._read_() for use in self.states]
        outputs = self.graph(*arguments, *self.captured, *values)
        for tape, start in tapes:
            _refuse(tape._records[start:])
        for use, value in zip(self.written, outputs[self.results:]):
            use.ref._commit_(value)
        return self.packed(self.owned(outputs))

    def owned(self, outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results among the outputs of the graph, none of them a tensor that others hold: to
        watch a result must not be to watch an argument."""
        return tuple([identity_(value) if i in self.borrowed else value
                      for i, value in enumerate(outputs[: self.results])])


class CompiledProgram(Protocol):
    """What computes a ClosedGraph: natively, by NumPy, or node by node."""

    @property
    def entry(self) -> Callable[..., Any]:
        """Takes the arguments as tensors, and gives the result as the traced function does."""

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Tensor, ...]:
        """The results, flat, for arguments of the right shapes and dtypes; the states are
        updated."""

    def inspect(self) -> str:
        """What it consists of, and where it is not native, why."""


def _settled(tracer: Tracer, written: Sequence[StateUse]) -> list[Tensor]:
    """What states are left with, before it was cut from what it was computed from: states cut it
    themselves, and only those who read it again have to know."""
    makers = {id(o): node for node in tracer.nodes for o in node.outputs}
    values = []
    for use in written:
        value = use.present
        # The cut is a copy that the program would make for nothing.
        while (node := makers.get(id(value))) is not None and node.op.name in _CUTS:
            value = node.inputs[0]
        values.append(value)
    return values


def _refuse(records: Sequence[Any]) -> None:
    """A traced function says in the call, not in `gradient`, that it cannot be differentiated.

    Raises:
        LookupError: an op among what a tape recorded has no gradient.
    """
    for record in records:
        op = Record.of(record).op
        if not op.has_gradient and lookup(op) is None:
            raise LookupError(
                f"gradient registry has no entry for: {op.tf_name}. A tape watches what goes "
                f"through this op in a traced function; put tf.stop_gradient before it, or give "
                f"a gradient with tf.RegisterGradient('{op.tf_name}')")


# No NamedTuple, which `nest` would take apart.
@dataclass(eq=False, slots=True)
class _Composite:
    """The place of a composite in a structure."""

    kind: type[CompositeTensor]
    frame: object
    parts: list[int]


def _rebuilt(at: object, results: Sequence[object]) -> Any:
    if not isinstance(at, _Composite):
        return at
    return at.kind._of_(at.frame, [results[i] for i in at.parts])


def trace_closed(fn: Callable[..., object], tracer: Tracer, arguments: Sequence[SymbolicTensor],
                 name: str) -> ClosedGraph:
    """Run `fn()`, which uses `arguments`, as part of `tracer`.

    Raises:
        TypeError: the result holds something that is neither a tensor nor becomes one, nor None.
    """
    results: list[Tensor] = []

    def place(leaf: object) -> Any:
        if leaf is None:
            return None
        if isinstance(leaf, CompositeTensor):
            parts = [place(part) for part in leaf._parts_()]
            return _Composite(type(leaf), leaf._frame_(), parts)
        try:
            results.append(tracer.local(convert(leaf)))
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"{name} returned {shown(leaf)} of type {type(leaf).__name__}: a traced function "
                f"returns tensors, numbers, arrays, None, and nests of these ({error})") from None
        return len(results) - 1

    try:
        structure = tracer.run(lambda: nest.map_structure(place, nest.at_most(
            _DEEPEST, fn(), f"the result of {name}")))
    finally:
        tracer.finished = True
    closed = ClosedGraph(arguments, tracer, results, structure)
    for listener in listeners:
        listener(closed)
    return closed


def pure(inputs: Sequence[Any], nodes: Sequence[Node], outputs: Sequence[Tensor],
         shared: frozenset[int] = frozenset()) -> ClosedGraph:
    """These nodes as a function of tensors, which gives a tuple; `shared` are the ids of those that
    another program computes again, or reads."""
    tracer = Tracer()
    tracer.nodes = list(nodes)
    closed = ClosedGraph(inputs, tracer, outputs, tuple(range(len(outputs))))
    closed.shared = shared
    return closed

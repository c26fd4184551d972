"""Bodies: functions traced as parts of a trace, applied by hosted steps as often as values say.

A branch or the body of a loop is a graph of its own. What it uses of the trace around it, and the
state that it touches, are further inputs of the step that applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import active, paused, tracer_now
from gtape.core.convert import convert
from gtape.core.device import ArrayType
from gtape.core.formatting import shown
from gtape.core.installed import installed
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import Variable
from gtape.trace.graph import Graph
from gtape.trace.host_steps import HostCallback
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import StateUse, Tracer

Type = tuple[Spec, ArrayType]


def _uncompiled(graph: Graph) -> Callable[..., Sequence[Tensor]]:
    return graph


#: What runs the graph of a body where nothing records: a compiler may put a better one here.
#: Put here from outside, since `gtape.compile` imports this package.
subgraph_compiler = _uncompiled


class Subgraph:
    """The graph of `fn` on symbols of `types`.

    Inputs: the arguments, what was captured, the states' values. Outputs: the results, then the new
    values of the states it writes. `structure` is the result with a number for every tensor.
    """

    def __init__(self, fn: Callable[..., object], types: Sequence[Type], name: str) -> None:
        # States are read where the body is applied, each time, and not where it is traced.
        tracer = Tracer(tracer_now(), own_states=True)
        arguments = [tracer.symbol(*t) for t in types]
        with paused():
            try:
                self.structure, results = tracer.run(
                    lambda: flat_tensors(fn(*arguments), name, tracer))
            finally:
                tracer.finished = True
        self.results = tuple(results)
        uses = list(tracer.states.values())
        self.written = [use for use in uses if use.written]
        outputs = (*results, *(use.present for use in self.written))
        graph = Graph((), tuple(tracer.nodes), outputs).live()
        read = {id(v) for v in outputs} | {id(v) for node in graph.nodes for v in node.inputs}
        #: Those that matter: of others only the dtype or shape was asked for.
        self.states: list[StateUse] = [u for u in uses if u.written or id(u.start) in read]
        watched = _watched(graph)
        self.captured = [*(outer for outer, _ in tracer.captures.values()), *watched]
        inner = [symbol for _, symbol in tracer.captures.values()]
        inputs = (*arguments, *inner, *watched, *(use.start for use in self.states))
        self.graph = Graph(inputs, graph.nodes, outputs)  # type: ignore[arg-type]
        self._pure: Graph | None = None
        self._program: Callable[..., Sequence[Tensor]] | None = None

    @property
    def has_side_effect(self) -> bool:
        return any(node.has_side_effect for node in self.graph.nodes)

    def __call__(self, values: Sequence[Tensor], again: bool = False) -> Sequence[Tensor]:
        """The outputs. `again`: it ran before, and what it does besides is not done again."""
        if again and self.has_side_effect:
            if self._pure is None:
                self._pure = self.graph.needed()
            return self._pure(*values)
        # Node by node, for a tape has to see the ops.
        if active() or tracer_now() is not None:
            return self.graph(*values)
        # When it first runs unrecorded: a body that is only differentiated is never compiled.
        if self._program is None:
            self._program = subgraph_compiler(self.graph)
        return self._program(*values)


def flat_tensors(value: object, name: str, tracer: Tracer | None = None,
                 ) -> tuple[Any, list[Tensor]]:
    """A structure with a number in place of every tensor, None left as it is, and the tensors.

    Raises:
        TypeError: something in it is no tensor, nor becomes one.
    """
    tensors: list[Tensor] = []

    def place(leaf: TensorLike | None) -> Any:
        if leaf is None:
            return None
        if hasattr(leaf, "to_dense"):
            leaf = leaf.to_dense()
        try:
            tensor = convert(leaf)
        except (ValueError, TypeError) as error:
            raise TypeError(f"{name}: results must be tensors, numbers, arrays, None, and nests of "
                            f"these; got {shown(leaf)} ({error})") from None
        tensors.append(tensor if tracer is None else tracer.local(tensor))
        return len(tensors) - 1

    return nest.map_structure(place, value), tensors


def pack(structure: object, tensors: Sequence[object]) -> Any:
    """`structure` with the tensors in the place of their numbers."""
    return nest.map_structure(lambda at: at if at is None else tensors[at], structure)


def _watched(graph: Graph) -> list[EagerTensor]:
    """The constants that a tape knows: gradients may flow to them."""
    # They become inputs, because a tape that looks on sees the step and not what is inside.
    watched: dict[int, EagerTensor] = {}
    for tensor in (*(t for node in graph.nodes for t in node.inputs), *graph.outputs):
        if type(tensor) is EagerTensor and tensor._k and tensor._t.differentiable:
            watched[id(tensor)] = tensor
    return list(watched.values())


class ClosedOver:
    """The further inputs of a step that applies bodies: captured values, and states."""

    def __init__(self, bodies: Sequence[Subgraph]) -> None:
        self.bodies = tuple(bodies)
        # What both read is one input.
        captured = {id(t): t for body in bodies for t in body.captured}
        self.states = list({use.ref._k: use.ref for b in bodies for use in b.states}.values())
        written = {use.ref._k for body in bodies for use in body.written}
        #: The positions of the states that a body writes.
        self.written = [i for i, state in enumerate(self.states) if state._k in written]
        self._captured = list(captured.values())
        places = {key: i for i, key in enumerate(captured)}
        state_places = {state._k: i for i, state in enumerate(self.states)}
        self._places = {id(body): ([places[id(t)] for t in body.captured],
                                   [state_places[use.ref._k] for use in body.states],
                                   [state_places[use.ref._k] for use in body.written])
                        for body in bodies}

    @property
    def has_side_effect(self) -> bool:
        return any(body.has_side_effect for body in self.bodies)

    @property
    def refuses(self) -> bool:
        return any(node.op.may_refuse(node.inputs) for b in self.bodies for node in b.graph.nodes)

    def values(self) -> list[Tensor]:
        """The tensors for the inputs, in the trace around the bodies."""
        return [*self._captured, *(state._read_() for state in self.states)]

    def split(self, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """(captured, state) of what `values` gave."""
        count = len(self._captured)
        return list(values[:count]), list(values[count:])

    def apply(self, body: Subgraph, arguments: Sequence[Tensor], captured: Sequence[Tensor],
              state: list[Tensor], again: bool) -> Sequence[Tensor]:
        """The results of a body; `state` becomes what it leaves."""
        shared, states, written = self._places[id(body)]
        results = body([*arguments, *(captured[i] for i in shared), *(state[i] for i in states)],
                       again)
        count = len(body.results)
        for i, value in zip(written, results[count:]):
            state[i] = value
        return results[:count]

    def state_types(self) -> list[Type]:
        """The types of the states that are written; a body must keep them.

        Raises:
            ValueError: it does not.
        """
        types = []
        for i in self.written:
            key = self.states[i]._k
            uses = [use for body in self.bodies for use in body.states if use.ref._k == key]
            start = uses[0].start
            for use in uses:
                if use.present.spec != start.spec:
                    raise ValueError(
                        f"a Variable that is assigned in a branch or a loop of a traced function "
                        f"must keep its shape: it has {start.spec}, and is given "
                        f"{use.present.spec}")
            types.append((start.spec, start._t))
        return types

    def store(self, values: Sequence[Tensor]) -> None:
        """Make `values` the state of the states that are written."""
        for i, value in zip(self.written, values):
            state = self.states[i]
            if isinstance(state, Variable):
                state._commit_(value)
            else:
                tracer_now().write(state, _cut(value))


def _cut(value: Tensor) -> Tensor:
    """The value as a state keeps it: no gradient flows through an assignment."""
    with paused():
        return installed.stop_gradient(value)


class SubgraphOp(HostCallback):
    """A step that applies bodies: `run(*values, again)`."""

    def __init__(self, name: str, run: Callable[..., Sequence[Tensor]], types: Sequence[Type],
                 inputs: ClosedOver) -> None:
        super().__init__(name, lambda *values: run(values, False), [s for s, _ in types],
                         [t for _, t in types], has_side_effect=inputs.has_side_effect,
                         refuses=inputs.refuses, parts=[body.graph for body in inputs.bodies])
        self._again = run
        self.inputs = inputs

    def gradient(self, wanted: Sequence[int], inputs: Sequence[Tensor],
                 given: Sequence[int]) -> HostCallback:
        pure = HostCallback(self.name, lambda *values: self._again(values, True), self.specs,
                            self.types, parts=self.parts)
        return pure.gradient(wanted, inputs, given)


def depends(fn: Callable[..., object], arguments: Sequence[object]) -> bool:
    """Whether the result of `fn` on these arguments is known only when the traced function runs.

    `fn` runs on trial: what it emits or writes is forgotten.
    """
    tracer = tracer_now()
    if tracer is None:
        return False
    trial = Tracer(tracer)  # nodes and writes go to it, and with it
    with paused():
        inner = [trial.local(a) if isinstance(a, Tensor) else a for a in arguments]
        results = trial.run(fn, *inner)
    trial.finished = True
    return any(type(leaf) is SymbolicTensor for leaf in nest.flatten(results))

"""ForwardBackward: a forward program that leaves what a backward program needs.

Both are functions of tensors alone: a Variable's value is one that was read before, and what the
forward program makes is never written to again.

For `reduce_sum(exp(tanh(x @ w)) * 2)` and the gradient of w:

    forward   x, w -> the sum, tanh(…), exp(…)      2 exp(…) is cheap, and not kept
    backward  x, tanh(…), exp(…), g -> xᵀ @ (((g * 2) * exp(…)) * (1 - tanh(…)²))

The operands of `backward` are inputs, outputs that it reads (`kept`), and cotangents; w is not
among them, for no derivative here reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gtape.autodiff.tape import GradientTape
from gtape.compile.compile_cost import is_cheap
from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import _refuse, pure
from gtape.core.context import paused
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.locks import lock, trace_lock
from gtape.core.recording import Record
from gtape.core.tensor import Tensor
from gtape.opdef.elementwise import Elementwise
from gtape.ops.shape.identity import identity_
from gtape.trace.custom_op import CustomStep
from gtape.trace.graph import Graph, Node, live_nodes
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import Tracer


class JointWalk(NamedTuple):
    """A backward walk: the cotangents it starts from, its nodes, and the gradient of every wanted
    input: a tensor, an IndexedSlices or None."""

    seeds: tuple[SymbolicTensor, ...]
    nodes: tuple[Node, ...]
    parts: tuple[Any, ...]


class Joint:
    """`graph` applied under a tape that watches the inputs at the positions `wanted`.

    Constants among the graph's inputs become inputs too.

    Raises:
        LookupError: an op that the wanted inputs reach has no gradient.
    """

    def __init__(self, graph: Graph, wanted: Sequence[int]) -> None:
        self._tracer = Tracer()
        # Persistent, for there is a walk for each set of outputs that cotangents arrive at.
        self._tape = GradientTape(persistent=True)
        self.inputs = tuple(self._tracer.symbol(v.spec, v._t) for v in graph.inputs)
        self._sources = [self.inputs[i] for i in wanted]
        with paused(), self._tape:
            self._tape.watch(self._sources)
            self.outputs: tuple[Tensor, ...] = self._tracer.run(graph, *self.inputs)
        _refuse(self._tape._records)
        #: The nodes of the graph; steps with gradients of their own only pass values on.
        self.nodes = tuple(n for node in self._tracer.nodes for n in _bare(node))

    def reach(self) -> list[int]:
        """For each output which of the wanted inputs it has a gradient for, as bits."""
        reached = {source._k: 1 << i for i, source in enumerate(self._sources)}
        for record in map(Record.of, self._tape._records):
            bits = 0
            for key in record.inputs:
                bits |= reached.get(key, 0)
            for key in record.outputs:
                reached[key] = reached.get(key, 0) | bits
        return [reached.get(v._k, 0) if v._t.differentiable else 0 for v in self.outputs]

    def walk(self, given: Sequence[int]) -> JointWalk:
        """The walk for cotangents of the outputs at the positions `given`."""
        # Walks follow each other in one trace; each takes the nodes behind those that were there.
        tracer, start = self._tracer, len(self._tracer.nodes)
        targets = [self.outputs[i] for i in given]
        seeds = tuple(tracer.symbol(t.spec, t._t) for t in targets)
        with paused():
            parts = tracer.run(lambda: self._tape.gradient(
                targets, self._sources, list(seeds), on_none="ignore"))
        return JointWalk(seeds, tuple(tracer.nodes[start:]), tuple(parts))


def _bare(node: Node) -> list[Node]:
    if not isinstance(node.op, CustomStep):
        return [node]
    count = node.attrs[0]
    return [Node(identity_, (value,), (), (result,))
            for value, result in zip(node.inputs[count:], node.outputs)]


def tensors_of(part: Any) -> tuple[Tensor, ...]:
    """The tensors that a gradient consists of."""
    if part is None:
        return ()
    return (part,) if isinstance(part, Tensor) else (part.values, part.indices)


#: Ops that move elements, or repeat them.
_MOVES = frozenset(("identity_", "stop_gradient_", "assigned_", "reshape_", "transpose_",
                    "broadcast_to_", "broadcast_in_dim_"))


def saved(nodes: Sequence[Node], needed: set[int], there: set[int]) -> list[Any]:
    """The outputs of forward `nodes` to save, so that those with ids in `needed` can be had again
    at little cost. `there` are the ids of what the backward program has anyhow.

    Memory is what counts: writing a value and reading it back costs more than a few operations on
    each element. What was moved is saved as it was before, and cheap formulas of what is saved are
    computed again.
    """
    needed = set(needed)
    # Backwards, so that a chain of moves ends at the value that was moved first.
    for node in reversed(nodes):
        results = node.outputs
        # A value that was broadcast is the larger one: then it is the operand that is kept.
        if node.op.name in _MOVES and id(results[0]) in needed and id(results[0]) not in there and (
                _size(node.inputs[0]) <= _size(results[0])):
            needed.add(id(node.inputs[0]))
    # Forward order: whether a formula is cheap depends on whether its operands are there.
    known = set(there)
    computed = {id(v) for node in nodes for v in node.outputs}
    kept = []
    for node in nodes:
        if _cheap(node) and all(id(v) in known or id(v) not in computed for v in node.inputs):
            known |= {id(v) for v in node.outputs}
            continue
        for value in node.outputs:
            if id(value) in needed and id(value) not in known:
                kept.append(value)
                known.add(id(value))
    return kept


def _size(tensor: Tensor) -> int:
    return math.prod(tensor.spec.shape)


def _cheap(node: Node) -> bool:
    op = node.op
    if op.name in _MOVES:
        return True
    return isinstance(op, Elementwise) and is_cheap(op.body())


class ForwardBackward:
    """The programs for the inputs of `graph` at the positions `wanted`.

    Args:
        results: how many outputs a cotangent can arrive at; those after them are state.

    Raises:
        LookupError: as `Joint`.
    """

    def __init__(self, graph: Graph, wanted: Sequence[int], results: int) -> None:
        self.wanted = tuple(wanted)
        joint = self._joint = Joint(graph, wanted)
        self.count = len(joint.outputs)
        #: Of each output, the inputs that it has a gradient for, as bits among those wanted.
        self.reach = joint.reach()
        # What to save is settled by the walk from all outputs: walks from fewer read no more.
        whole = joint.walk([i for i in range(results) if self.reach[i]])
        needed = _read(whole)
        own = {id(v): i for i, v in enumerate(joint.outputs) if type(v) is SymbolicTensor}
        extra = saved(joint.nodes, needed, set(own))
        outputs = (*joint.outputs, *extra)
        self._shared = _shared(joint, needed)
        self.forward = _entry(pure(joint.inputs, joint.nodes, outputs, self._shared))
        there = {id(v) for v in joint.inputs}
        #: The outputs that backward programs read, those saved for them too.
        self.kept = [i for v, i in own.items() if v in needed and v not in there]
        self.kept += range(self.count, len(outputs))
        self._held = (*joint.inputs, *(outputs[i] for i in self.kept))
        self._lock = lock()
        self._backward: dict[tuple[int, ...], Backward] = {}

    def backward(self, given: tuple[int, ...]) -> Backward:
        """The program for cotangents of the outputs at these positions.

        It takes the inputs, the outputs `kept`, and the cotangents.
        """
        program = self._backward.get(given)
        if program is None:
            with trace_lock(self._lock):
                program = self._backward.get(given)  # perhaps another thread was first
                if program is None:
                    program = Backward(self._joint, self._joint.walk(given), self._held,
                                       self._shared)
                    self._backward[given] = program
        return program


def _read(walk: JointWalk) -> set[int]:
    """The ids of what a walk reads of the values before it."""
    outputs = [t for part in walk.parts for t in tensors_of(part)]
    return live_nodes(walk.nodes, outputs)[1]


def _shared(joint: Joint, needed: set[int]) -> frozenset[int]:
    """The ids of the values before a walk that are read more than once, by it or by each other: a
    backward program that computes them again may read them once, and they are the same there."""
    once: set[int] = set()
    shared: set[int] = set()
    for numbers in (needed, *({id(v) for v in node.inputs} for node in joint.nodes)):
        shared |= numbers & once
        once |= numbers
    return frozenset(shared)


def _entry(traced: Any) -> Callable[..., Sequence[Tensor]]:
    with paused():
        return compile_closed(traced).entry


class Backward:
    """The program of a walk: what is held and the cotangents -> the gradients.

    Values before the walk that are not held are computed again.
    """

    def __init__(self, joint: Joint, walk: JointWalk, held: Sequence[Tensor],
                 shared: frozenset[int]) -> None:
        given = {id(v): v for v in (*held, *walk.seeds)}
        places = {id(v): i for i, v in enumerate((*held, *walk.seeds))}
        outputs: list[Tensor] = []
        for tensor in (t for part in walk.parts for t in tensors_of(part)):
            if id(tensor) not in places:
                places[id(tensor)] = len(held) + len(walk.seeds) + len(outputs)
                outputs.append(tensor)
        nodes, read = live_nodes((*joint.nodes, *walk.nodes), outputs, known=given)
        inputs = [v for key, v in given.items() if key in read]
        self._reads = [places[id(v)] for v in inputs]
        self._run = _entry(pure(inputs, nodes, outputs, shared)) if outputs else tuple
        self._parts = [_placed(part, places) for part in walk.parts]

    def __call__(self, held: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Any]:
        """The gradient of each wanted input: a tensor, an IndexedSlices or None."""
        given = (*held, *seeds)
        with paused():
            every = (*given, *self._run(*[given[i] for i in self._reads]))
        return [part if part is None else every[part] if type(part) is int else
                IndexedSlices(every[part[0]], every[part[1]], part[2]) for part in self._parts]


def _placed(part: Any, places: dict[int, int]) -> Any:
    """Where the tensors of a gradient are: a place, two and the whole shape, or None."""
    if part is None or isinstance(part, Tensor):
        return None if part is None else places[id(part)]
    return places[id(part.values)], places[id(part.indices)], part.dense_shape

"""A call of a traced function that tapes record: two programs, and one record on each tape.

The record holds the inputs and what the forward program left. Its walk runs the backward program;
where that walk is itself recorded, or cotangents are values of a trace, the graph is applied again
under a tape, node by node, and differentiated: right at every order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.autodiff.backward import Grads, add_to
from gtape.autodiff.tape import GradientTape
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.gradient.partition import ForwardBackward
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import active, new_key, paused, user_frame
from gtape.core.locks import lock, trace_lock
from gtape.core.op import Op
from gtape.core.recording import CUT, OP, PAYLOAD, UNKNOWN, mark
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.ops.shape.identity import identity_
from gtape.trace.graph import Graph, Node, live_nodes
from gtape.trace.host_steps import HostCallback


class Application(Op):
    """A whole traced function, as tapes see it: one op."""

    holomorphic = False

    def __init__(self, name: str, graph: Graph, nodes: Sequence[Node],
                 constants: Sequence[Tensor], wanted: Sequence[int], results: int) -> None:
        super().__init__(name, ("args",), "A traced function.", name)
        #: Tensors from outside that a tape knows: further inputs.
        self.constants = tuple(constants)
        inputs = (*graph.inputs, *constants)
        self.pair = ForwardBackward(Graph(inputs, graph.nodes, graph.outputs), wanted, results)  # type: ignore[arg-type]
        #: The graph without what it does besides making its outputs.
        self.definition = Graph(inputs, tuple(nodes), graph.outputs)  # type: ignore[arg-type]


class Seen(NamedTuple):
    """What a tape that knows some of the wanted inputs records."""

    #: The places of these inputs among those wanted.
    sources: tuple[int, ...]
    #: The outputs that have a gradient for one of them, and the others.
    connected: tuple[int, ...]
    others: tuple[int, ...]


class Differentiable:
    """Calls of `traced` while recorders are active.

    `plain(tensors)` runs it unrecorded.
    """

    def __init__(self, traced: ClosedGraph, plain: Callable[..., object], name: str) -> None:
        self._traced, self._plain, self._name = traced, plain, name
        graph = traced.graph
        self._nodes, _ = live_nodes(graph.nodes, graph.outputs)
        #: Steps that are Python code are differentiated by recording what they do.
        self._one_by_one = any(isinstance(node.op, HostCallback) for node in self._nodes)
        self._constants = _constants(graph)
        self._lock = lock()
        #: By the bits of the inputs that a tape knows; None where there can be no pair.
        self._ops: dict[int, Application | None] = {}
        self._seen: dict[tuple[int, int], Seen] = {}

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        """The result. Raises as `ClosedGraph.apply`."""
        stack = active()
        # Forward accumulators and batches need the ops: there is no pushing forward through a
        # program.
        if self._one_by_one or not all(r.is_tape for r in stack):
            return self._traced.apply(tensors)
        traced = self._traced
        inputs = (*tensors, *traced.captured, *[use.ref._read_() for use in traced.states])
        every = (*inputs, *self._constants)
        known = [_bits(tape._known, every) for tape in stack]
        wanted = 0
        for bits in known:
            wanted |= bits
        if not wanted:
            return self._unwatched(tensors, inputs, stack)
        try:
            op = self._ops[wanted]
        except KeyError:
            op = self._op(wanted)
        if op is None:
            return traced.apply(tensors)
        inputs += op.constants
        with paused():
            outputs = op.pair.forward(*inputs)
        held = (*inputs, *[outputs[i] for i in op.pair.kept])
        frame = user_frame(sys._getframe(1))
        for tape, bits in zip(stack, known):
            seen = self._seen.get((wanted, bits)) or self._sees(op, wanted, bits)
            _record(tape, op, seen, inputs, outputs, held, frame)
        for use, value in zip(traced.written, outputs[traced.results:]):
            use.ref._commit_(value)
        return traced.packed(outputs[: traced.results])

    def _unwatched(self, tensors: Sequence[Tensor], inputs: tuple[Tensor, ...],
                   stack: tuple[GradientTape, ...]) -> Any:
        """The result of a call none of whose inputs a tape knows."""
        with paused():
            result = self._plain(tensors)
        results = tuple(v for v in nest.flatten(result) if isinstance(v, Tensor))
        for tape in stack:
            mark(tape, UNKNOWN, self._name, inputs, results, user_frame(sys._getframe(1)))
        return result

    def _op(self, wanted: int) -> Application | None:
        """What is recorded where tapes know these inputs; None: the nodes one by one."""
        with trace_lock(self._lock):
            if wanted not in self._ops:
                try:
                    self._ops[wanted] = self._application(wanted)
                except Exception:
                    # What is wrong with a gradient is said by those who apply the nodes.
                    self._ops[wanted] = None
            return self._ops[wanted]

    def _application(self, wanted: int) -> Application:
        graph = self._traced.graph
        count = len(graph.inputs)
        places = _places(wanted)
        constants = [self._constants[i - count] for i in places if i >= count]
        positions = [i for i in places if i < count]
        positions += range(count, count + len(constants))
        return Application(self._name, graph, self._nodes, constants, positions,
                           self._traced.results)

    def _sees(self, op: Application, wanted: int, bits: int) -> Seen:
        """What a tape records that knows the inputs `bits` among those `wanted`."""
        pair = op.pair
        sources = tuple(i for i, at in enumerate(_places(wanted)) if bits >> at & 1)
        of_tape = sum(1 << i for i in sources)
        connected = tuple(i for i, reach in enumerate(pair.reach) if reach & of_tape)
        others = tuple(i for i in range(pair.count) if not pair.reach[i] & of_tape)
        seen = self._seen[wanted, bits] = Seen(sources, connected, others)
        return seen


def _constants(graph: Graph) -> tuple[EagerTensor, ...]:
    """The tensors from outside that a tape may watch."""
    every = (*(t for node in graph.nodes for t in node.inputs), *graph.outputs)
    return tuple({id(t): t for t in every
                  if type(t) is EagerTensor and t._t.differentiable}.values())


def _bits(known: set[int], tensors: Sequence[Tensor]) -> int:
    """Which tensors a tape knows that gradients flow to."""
    bits = 0
    for i, tensor in enumerate(tensors):
        if tensor._k in known and tensor._t.differentiable:
            bits |= 1 << i
    return bits


def _places(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _record(tape: Any, op: Application, seen: Seen, inputs: tuple[Tensor, ...],
            outputs: Sequence[Tensor], held: tuple[Tensor, ...], frame: Any) -> None:
    if seen.others:
        mark(tape, CUT if seen.sources else UNKNOWN, op.name,
             tuple(inputs[op.pair.wanted[i]] for i in seen.sources),
             tuple(outputs[i] for i in seen.others), frame)
    if not seen.connected:
        return
    keys = []
    for i in seen.connected:
        tensor = outputs[i]
        if not tensor._k:
            tensor._k = new_key()
        keys.append(tensor._k)
    tape._known.update(keys)
    sources = tuple([inputs[op.pair.wanted[i]]._k for i in seen.sources])
    tape._records.append(
        (_arrays, keys[0] if len(keys) == 1 else tuple(keys), frame.f_code, frame.f_lasti, op,
         sources[0] if len(sources) == 1 else sources, seen, sources, held))


def _given(g: TensorLike, seen: Seen) -> dict[int, Any]:
    """The cotangents that arrived, by the output's position."""
    if type(g) is not list:
        return {seen.connected[0]: g}
    return {i: part for i, part in zip(seen.connected, g) if part is not None}


def _arrays(grads: Grads, g: TensorLike, record: Any) -> None:
    op, (seen, keys, held) = record[OP], record[PAYLOAD:]
    given = _given(g, seen)
    seeds = [wrap(np.asarray(a) if isinstance(a, np.generic) else a) for a in given.values()]
    parts = op.pair.backward(tuple(given))(held, seeds)
    for i, key in zip(seen.sources, keys):
        part = parts[i]
        if part is not None:
            add_to(grads, key, part._a if isinstance(part, EagerTensor) else part)


def _tensors(grads: Grads, g: TensorLike, record: Any) -> None:
    """Differentiate the graph itself, in view of other recorders."""
    op, (seen, keys, held) = record[OP], record[PAYLOAD:]
    given = _given(g, seen)
    values = list(held[: len(op.definition.inputs)])
    positions = [op.pair.wanted[i] for i in seen.sources]
    sources = [identity_(values[at]) for at in positions]
    for at, source in zip(positions, sources):
        values[at] = source
    with GradientTape() as tape:
        tape.watch(sources)
        results = op.definition(*values)
    parts = tape.gradient([results[i] for i in given], sources, list(given.values()),
                          on_none="ignore")
    for key, part in zip(keys, parts):
        if part is not None:
            add_to(grads, key, part)


_arrays.tensors = _tensors  # type: ignore[attr-defined]

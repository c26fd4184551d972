"""Joint: a graph and its derivative in one trace, which is then cut in two.

The graph is applied to symbols while a tape records, and the walk back through that tape is traced
too. What the walk reads of the values in between is what a forward program has to leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.autodiff.tape import GradientTape
from gtape.compile.frontend.closed_graph import _refuse
from gtape.core.context import paused
from gtape.core.recording import Record
from gtape.core.tensor import Tensor
from gtape.ops.shape.identity import identity_
from gtape.trace.custom_op import CustomStep
from gtape.trace.graph import Graph, Node
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

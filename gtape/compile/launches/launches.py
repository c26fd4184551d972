"""Graphs for devices that launch kernels: what formulas compute, in as few launches as possible.

Formulas that read each other become one launch with several results; and launches that compute the
same of several tensors, as the updates of a model's variables do, become one for all of them.

Launches are put together zone by zone. The nodes of a zone need nothing of its launches but what
the same launch makes: whatever waits for a launch belongs to a later zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gtape.compile.ir.linear_products import with_linear_products
from gtape.compile.launches.formulas import fused, joinable, number_or_input
from gtape.core.device import ArrayType
from gtape.core.op import Op
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.scalar_graph import Expr, ScalarGraph, substitute, topological
from gtape.trace.graph import Graph, Node

#: Scalar ops, and tensors read and written, of one launch: more do not fit into registers.
_OPS, _TENSORS = 64, 16
#: Ops that hand their first input on as it is.
_PASSING = ("stop_gradient_", "assigned_")


def launches(graph: Graph) -> Graph:
    """`graph` with formulas joined; by launches where a device has kernels for them."""
    if not any(t._t.device.maps for node in graph.nodes for t in node.outputs):
        return fused(graph)
    joined = fused(with_linear_products(_once(_passed(graph))))
    return Graph(graph.inputs, tuple(_Zones(joined).nodes()), graph.outputs)


# ---------------------------------------------------------------- the same value once
def _passed(graph: Graph) -> Graph:
    """Nodes read what was handed on to them where it was made. Nobody records them."""
    kept = {id(v) for v in graph.outputs}
    found: dict[int, Tensor] = {}
    nodes = []
    for node in graph.nodes:
        inputs = tuple([found.get(id(v), v) for v in node.inputs])
        if node.op.name in _PASSING and id(node.outputs[0]) not in kept:
            found[id(node.outputs[0])] = inputs[0]
        else:
            nodes.append(Node(node.op, inputs, node.attrs, node.outputs))
    return Graph(graph.inputs, tuple(nodes), graph.outputs)


def _once(graph: Graph) -> Graph:
    """Formulas and casts of the same tensors once: every variable's update asks for the rate."""
    kept = {id(v) for v in graph.outputs}
    first: dict[int, Tensor] = {}
    chosen: dict[int, Any] = {}
    known: dict[Any, Tensor] = {}
    numbers: dict[int, Any] = {}
    for node in graph.nodes:
        if isinstance(node.op, Elementwise) or node.op.name == "cast_":
            key = (node.op, node.attrs,
                   *[_identity(first.get(id(v), v), numbers) for v in node.inputs])
            (out,) = node.outputs
            same = first[id(out)] = known.setdefault(key, out)
            if id(out) in kept:  # it stands for the others, from where the first one is made
                chosen.setdefault(id(same), out)
    nodes = []
    for node in graph.nodes:
        outputs = tuple([chosen.get(id(v), v) for v in node.outputs])
        earlier = first.get(id(node.outputs[0])) if node.outputs else None
        if earlier is not None and earlier is not node.outputs[0]:
            if node.outputs[0] is chosen.get(id(earlier)) or id(node.outputs[0]) not in kept:
                continue
            outputs = node.outputs  # a result of its own
        inputs = [first.get(id(v), v) for v in node.inputs]
        nodes.append(Node(node.op, tuple([chosen.get(id(v), v) for v in inputs]), node.attrs,
                          outputs))
    return Graph(graph.inputs, tuple(nodes), graph.outputs)


def _identity(tensor: Tensor, numbers: dict[int, Any]) -> Any:
    """What two tensors of the same value have in common: a constant's number, or itself."""
    if type(tensor) is not EagerTensor or tensor.spec.shape:
        return id(tensor)
    if id(tensor) not in numbers:
        numbers[id(tensor)] = (tensor._t, tensor._peek().tobytes())
    return numbers[id(tensor)]


# ---------------------------------------------------------------- what is launched together
class _Member(NamedTuple):
    """Nodes of one launch: results in terms of inputs called x0, x1 …"""

    nodes: list[Node]
    bodies: list[Expr]
    inputs: list[Tensor]
    outputs: list[Any]

    @property
    def key(self) -> Any:
        """What members that one launch can compute have in common."""
        out = self.outputs[0]
        modes = tuple([v.spec.shape == out.spec.shape for v in self.inputs])
        order = topological(self.bodies)
        places = {id(n): i for i, n in enumerate(order)}
        text = tuple([(n.op, type(n.value), str(n.value), *[places[id(a)] for a in n.args])
                      for n in order])
        return out._t, modes, text, tuple([places[id(b)] for b in self.bodies])


class _Zones:
    """The nodes of a graph in zones; within each, those that belong to one launch by `root`."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._joins = [_joins(node) for node in graph.nodes]
        self._kept = {id(v) for v in graph.outputs}
        made = {id(v): i for i, node in enumerate(graph.nodes) for v in node.outputs}
        #: (reader, maker, what is read), in the order of the readers.
        self._reads = [(i, made[id(v)], v) for i, node in enumerate(graph.nodes)
                       for v in node.inputs if id(v) in made]
        self._zone = self._earliest()
        self._put_off()
        self._parent = list(range(len(graph.nodes)))
        for i, j, v in self._reads:
            if self._joins[j] and self._zone[j] == self._zone[i] and not self._waits(i, j, v):
                self._parent[self._root(i)] = self._root(j)
        self._readers: dict[int, set[int]] = {}
        for i, _, v in self._reads:
            self._readers.setdefault(id(v), set()).add(i)

    def _earliest(self) -> list[int]:
        """The first zone that each node can be in. What lasts stays in its order."""
        zones = [0] * len(self._graph.nodes)
        reads: dict[int, list[tuple[int, Tensor]]] = {}
        for i, j, v in self._reads:
            reads.setdefault(i, []).append((j, v))
        last = 0
        for i, node in enumerate(self._graph.nodes):
            zones[i] = max([zones[j] + self._waits(i, j, v) for j, v in reads.get(i, ())],
                           default=0)
            if node.has_side_effect:
                zones[i] = last = max(zones[i], last)
        return zones

    def _put_off(self) -> None:
        """Formulas go to the zone of the first that reads them, to be launched with it."""
        latest: dict[int, int] = {}
        for i, j, v in reversed(self._reads):
            if self._joins[i] and i in latest:
                self._zone[i] = max(self._zone[i], latest.pop(i))
            zone = self._zone[i] - self._waits(i, j, v)
            latest[j] = min(zone, latest.get(j, zone))
        for i, zone in latest.items():
            if self._joins[i]:
                self._zone[i] = max(self._zone[i], zone)

    def _waits(self, reader: int, maker: int, value: Tensor) -> bool:
        """Whether a node reads what another makes only after the launch that it is part of."""
        shape = self._graph.nodes[reader].outputs[0].spec.shape if self._joins[reader] else None
        return self._joins[maker] and value.spec.shape != shape

    def _root(self, i: int) -> int:
        while self._parent[i] != i:
            i = self._parent[i]
        return i

    def nodes(self) -> Iterator[Node]:
        zones: list[list[int]] = [[] for _ in range(max(self._zone, default=-1) + 1)]
        for i, zone in enumerate(self._zone):
            zones[zone].append(i)
        for zone_nodes in zones:
            together: dict[int, list[int]] = {}
            for i in zone_nodes:
                if self._joins[i]:
                    together.setdefault(self._root(i), []).append(i)
                else:
                    yield self._graph.nodes[i]
            alike: dict[Any, list[_Member]] = {}
            for places, member in self._members(together.values()):
                if member is None:
                    yield from (self._graph.nodes[i] for i in places)
                else:
                    alike.setdefault(member.key, []).append(member)
            for members in alike.values():
                yield from _launch(members)

    def _members(self, together: Iterable[list[int]],
                 ) -> Iterator[tuple[list[int], _Member | None]]:
        """What one launch each computes; formulas of the same tensors are one where they fit."""
        found: list[tuple[list[int], _Member | None]] = []
        reading: dict[int, int] = {}
        for places in together:
            member, at = self._member(places), len(found)
            other = next((reading[i] for i in _lanes(member) if i in reading), at)
            if other != at:
                both = sorted(found[other][0] + places)
                joined = self._member(both)
                if joined is not None:
                    places, member, at = both, joined, other
            found[at: at + 1] = [(places, member)]
            reading.update(dict.fromkeys(_lanes(member), at))
        return iter(found)

    def _member(self, places: Sequence[int]) -> _Member | None:
        """None where this is too much for one launch, or not for one to compute."""
        scope = ScalarGraph()
        inside: dict[int, Expr] = {}
        inputs: dict[str, Any] = {}
        for node in (self._graph.nodes[i] for i in places):
            args = [inside.get(id(v)) or number_or_input(v, scope, inputs) for v in node.inputs]
            inside[id(node.outputs[0])] = node.op.expression(scope, args)
        own = set(places)
        nodes = [self._graph.nodes[i] for i in places]
        outputs = [n.outputs[0] for n in nodes if id(n.outputs[0]) in self._kept
                   or self._readers.get(id(n.outputs[0]), own) - own]
        found = [inside[id(v)] for v in outputs]
        if not outputs or any(e.op is None for e in found):
            return None
        order = topological(found)
        names = [e.value for e in order if e.is_input]
        if not names or len(order) > _OPS + len(names) or (
                len(names) + len(outputs) > _TENSORS):
            return None
        fresh = ScalarGraph()
        called = {id(scope.input(n)): fresh.input(f"x{i}") for i, n in enumerate(names)}
        bodies = substitute(found, called, fresh)
        return _Member(nodes, bodies, [inputs[n] for n in names], outputs)


def _lanes(member: _Member | None) -> list[int]:
    """The ids of the tensors of which a launch reads an element for each of its results'."""
    return [] if member is None else [
        id(v) for v in member.inputs if v.spec.shape == member.outputs[0].spec.shape]


def _joins(node: Node) -> bool:
    """Formulas, element by element, or with one number for all elements."""
    if not joinable(node):
        return False
    out = node.outputs[0]
    return bool(out._t.device.maps) and all(
        v.spec.shape == out.spec.shape or math.prod(v.spec.shape) == 1 for v in node.inputs)


def _launch(members: Sequence[_Member]) -> Sequence[Node]:
    """The node of one launch; the members' own nodes where there is nothing to join."""
    first = members[0]
    if len(members) == len(first.nodes) == 1:
        return first.nodes
    op = _made(members)
    if op is None:
        return [node for m in members for node in m.nodes]
    return [Node(op, tuple([v for m in members for v in m.inputs]), (),
                 tuple([v for m in members for v in m.outputs]))]


def _made(members: Sequence[_Member]) -> Launch | None:
    first = members[0]
    kind = first.outputs[0]._t
    params = [f"x{i}" for i in range(len(first.inputs))]
    dtype = kind.dtype.np_dtype
    name = first.nodes[-1].op.name
    found = kind.device.maps.make(name, first.bodies, params, [dtype] * len(params),
                                  [dtype] * len(first.bodies))
    if found is None:
        return None
    if len(members) == 1:
        return Launch(name, lambda arrays: found(*arrays), kind)
    whole = kind.device.maps.joined(found, [m.outputs[0].spec.shape for m in members], [
        v.spec.shape == first.outputs[0].spec.shape for v in first.inputs])
    return Launch(f"{name} of {len(members)}", whole, kind)


class Launch(Op):
    """One launch: `run(arrays)` gives all results, which have the type `kind`."""

    def __init__(self, name: str, run: Any, kind: ArrayType) -> None:
        super().__init__(name, ())
        self._run = run
        self._kind = kind

    def reapply(self, inputs: Sequence[EagerTensor], attrs: tuple[Any, ...],
                ) -> tuple[Tensor, ...]:
        with self._kind.device.scope():
            made = self._run([x._array_() for x in inputs])
        return tuple([note_origin(EagerTensor(a, self._kind)) for a in made])

"""Graphs for devices that launch kernels: what formulas compute, in as few launches as possible.

Formulas that only one other formula reads become part of it (`fused`); products take in the bias
and activation behind them (`with_linear_products`). Then formulas that read each other become one
launch with several results; and launches that compute the same of several tensors, as the updates
of a model's variables do, become one for all of them.

Launches are put together zone by zone. The nodes of a zone need nothing of its launches but what
the same launch makes: whatever waits for a launch belongs to a later zone.

An `InterpretedProgram` applies what is left, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.core.device import ArrayType
from gtape.core.dtypes import FLOAT8, string
from gtape.core.modes import Modes
from gtape.core.op import Op
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.opdef.cuda_text import NARROW
from gtape.opdef.elementwise import Elementwise, ElementwiseVjp
from gtape.opdef.scalar_graph import Expr, ScalarGraph, substitute, topological
from gtape.ops.elementwise.scalars import add
from gtape.ops.linalg.contraction import einsum_
from gtape.ops.linalg.linear import linear_, linear_gelu_, weight_gradients_
from gtape.ops.linalg.products import matmul_
from gtape.ops.nn.activations import gelu_tanh_, relu
from gtape.ops.shape.layout import sum_to_
from gtape.trace.graph import Graph, Node
from gtape.trace.symbolic_tensor import SymbolicTensor

#: Scalar ops in one formula: kernels and printed functions beyond that help nobody.
_LONGEST = 64


class _Formula(NamedTuple):
    """What a node computes, as an expression of tensors outside it."""

    body: Expr
    inputs: dict[str, Any]


def fused(graph: Graph) -> Graph:
    """`graph` with formulas joined; the others as they are."""
    uses: dict[int, int] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            uses[id(tensor)] = uses.get(id(tensor), 0) + 1
    kept = {id(t) for t in graph.outputs}
    scope = ScalarGraph()
    formulas: dict[int, _Formula] = {}
    absorbed: set[int] = set()
    for node in graph.nodes:
        if not joinable(node):
            continue
        formula = _of(node, scope, formulas, uses, kept)
        formulas[id(node.outputs[0])] = formula
        absorbed |= {id(t) for t in node.inputs
                     if id(t) in formulas and _inside(t, node, uses, kept)
                     # One that had no room stays a node.
                     and id(t) not in {id(v) for v in formula.inputs.values()}}
    nodes = []
    for node in graph.nodes:
        if id(node.outputs[0] if node.outputs else node) in absorbed:
            continue
        found = formulas.get(id(node.outputs[0])) if node.outputs else None
        nodes.append(node if found is None else _node(node, found))
    return Graph(graph.inputs, tuple(nodes), graph.outputs)


def joinable(node: Node) -> bool:
    """Formulas of one real floating type."""
    op = node.op
    if not isinstance(op, Elementwise) or not node.outputs[0].dtype.is_floating:
        return False
    kind = node.outputs[0]._t
    if kind.dtype.name in NARROW and (kind.device.is_host or not Modes.excess_precision):
        return False  # NumPy rounds each step, but for numbers beside bfloat16: there none
    return all(t._t is node.outputs[0]._t for t in node.inputs)


def _inside(tensor: Tensor, node: Node, uses: dict[int, int], kept: set[int]) -> bool:
    """Whether only `node` reads a tensor, in its own shape."""
    count = sum(t is tensor for t in node.inputs)
    # One that is broadcast would be computed for every element that reads it.
    return (uses[id(tensor)] == count and id(tensor) not in kept
            and tensor.spec.shape == node.outputs[0].spec.shape)


def _of(node: Node, scope: ScalarGraph, formulas: dict[int, _Formula], uses: dict[int, int],
        kept: set[int]) -> _Formula:
    inputs: dict[str, Any] = {}
    args = []
    room = _LONGEST
    for tensor in node.inputs:
        inner = formulas.get(id(tensor))
        if inner is not None and _inside(tensor, node, uses, kept):
            size = len(topological([inner.body]))
            if size < room:
                room -= size
                args.append(inner.body)
                inputs |= inner.inputs
                continue
        args.append(number_or_input(tensor, scope, inputs))
    return _Formula(node.op.expression(scope, args), inputs)


def number_or_input(tensor: Tensor, scope: ScalarGraph, inputs: dict[str, Tensor]) -> Expr:
    """A tensor in an expression: one number is a constant, any other one of `inputs`."""
    if type(tensor) is EagerTensor and not tensor.spec.shape:
        return scope.constant(tensor._peek()[()].item())
    name = f"t{id(tensor)}"  # one name in all formulas, which then share their parts
    inputs[name] = tensor
    return scope.input(name)


def _node(node: Node, formula: _Formula) -> Node:
    """One node that computes the whole formula; the node itself where nothing was joined."""
    read = [n.value for n in topological([formula.body]) if n.is_input]
    if not read or formula.body.is_input:
        return node
    tensors = [formula.inputs[name] for name in read]
    names = tuple(f"x{i}" for i in range(len(read)))
    out = node.outputs[0]
    if any(isinstance(t, SymbolicTensor) and t._t is not out._t for t in tensors):
        return node
    scope = ScalarGraph()
    own = formula.body.graph
    replaced = {id(own.input(name)): scope.input(new) for name, new in zip(read, names)}
    (body,) = substitute([formula.body], replaced, scope)
    op = ElementwiseVjp(node.op.name, names, body, out._t, tuple(t._t for t in tensors))
    return Node(op, tuple(tensors), (), node.outputs)


_ACTIVATIONS = {relu.op: "relu", gelu_tanh_.op: "gelu_tanh"}


def with_linear_products(graph: Graph) -> Graph:
    """`graph`, its products with biases and activations as one node each."""
    found = _Readers(graph)
    #: By the ids of nodes what stands in their place.
    made: dict[int, tuple[Node, ...]] = {}
    for node in graph.nodes:
        if id(node) not in made:
            made |= _forward(node, found) or _backward(node, found)
    nodes = [other for node in graph.nodes for other in made.get(id(node), (node,))]
    return Graph(graph.inputs, tuple(nodes), graph.outputs)


class _Readers:
    """Who reads a tensor, and where it is made."""

    def __init__(self, graph: Graph) -> None:
        self.place = {id(node): i for i, node in enumerate(graph.nodes)}
        self._made = {id(v): i for i, node in enumerate(graph.nodes) for v in node.outputs}
        self._kept = {id(v) for v in graph.outputs}
        self._nodes: dict[int, list[Node]] = {}
        for node in graph.nodes:
            for v in {id(v) for v in node.inputs}:
                self._nodes.setdefault(v, []).append(node)

    def of(self, tensor: Any) -> list[Node]:
        return self._nodes.get(id(tensor), [])

    def only(self, tensor: Tensor) -> Node | None:
        """The one node that reads a tensor, which is no result."""
        found = self.of(tensor)
        return found[0] if len(found) == 1 and id(tensor) not in self._kept else None

    def there(self, tensor: Tensor, node: Node) -> bool:
        """Whether a tensor is made before `node`."""
        return self._made.get(id(tensor), -1) < self.place[id(node)]


def _forward(node: Node, readers: _Readers) -> dict[int, tuple[Node, ...]]:
    """x W + b, and its activation."""
    total = readers.only(node.outputs[0]) if _multiplies(node) else None
    if total is None or total.op is not add.op:
        return {}
    product, (z,) = node.outputs[0], total.outputs
    bias = next((v for v in total.inputs if v is not product), None)
    if bias is None or bias.spec.shape != product.spec.shape[-1:] or bias._t is not z._t:
        return {}
    inputs = (*node.inputs, bias)
    after = readers.only(z)
    if after is not None and after.op in _ACTIVATIONS:
        made = Node(linear_, inputs, (_ACTIVATIONS[after.op],), after.outputs)
        return {id(node): (), id(total): (made,), id(after): ()}
    # The gradient of gelu reads z again: one launch writes both.
    gelu = next((n for n in readers.of(z) if n.op is gelu_tanh_.op), None)
    if gelu is not None:
        both = Node(linear_gelu_, inputs, (), (*gelu.outputs, z))
        return {id(node): (), id(total): (both,), id(gelu): ()}
    return {id(node): (), id(total): (Node(linear_, inputs, (None,), (z,)),)}


def _multiplies(node: Node) -> bool:
    """Whether it is x W over the last axis of x."""
    if node.op is matmul_:
        return not any(node.attrs) and node.inputs[0].ndim > 1 and node.inputs[1].ndim == 2
    if node.op is not einsum_ or len(node.inputs) != 2:
        return False
    x, w, y = _terms(node)
    return len(w) == 2 and w[1] not in x and x[-1:] == w[0] and y == x[:-1] + w[1]


def _backward(node: Node, readers: _Readers) -> dict[int, tuple[Node, ...]]:
    """x^T dz, and dz summed for the bias: where the first of the two is."""
    pair = _of_weights(node)
    if pair is None:
        return {}
    x, dz = pair
    total = next((n for n in readers.of(dz) if n.op is sum_to_
                  and n.attrs == (dz.spec.shape[-1:],)), None)
    if total is None:
        return {}
    first, second = sorted((node, total), key=lambda n: readers.place[id(n)])
    if not readers.there(x, first):
        return {}
    both = Node(weight_gradients_, (x, dz), (), (node.outputs[0], total.outputs[0]))
    return {id(first): (both,), id(second): ()}


def _of_weights(node: Node) -> tuple[Tensor, ...] | None:
    """(x, dz), where the node is x^T dz over all axes but the last."""
    if node.op is matmul_:
        x, dz = node.inputs
        return (x, dz) if node.attrs == (True, False) and x.ndim == dz.ndim == 2 else None
    if node.op is not einsum_ or len(node.inputs) != 2:
        return None
    first, second, y = _terms(node)
    for a, b, pair in ((first, second, node.inputs), (second, first, node.inputs[::-1])):
        if y == a[-1:] + b[-1:] and a[:-1] == b[:-1] and len(set(a)) == len(a) > 1:
            return pair[0], pair[1]
    return None


def _terms(node: Node) -> tuple[str, str, str]:
    inputs, _, output = node.attrs[0].partition("->")
    first, _, second = inputs.partition(",")
    return first, second, output


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
    # A result is found by its id, which a node has to make.
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
        # By bits: 0.0 equals -0.0, and nan not itself.
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


class InterpretedProgram:
    """`run(tensors)` applies the nodes one by one: NumPy's functions, or a GPU's kernels.

    `reason` says why the graph was not compiled. Formulas are joined first.
    """

    def __init__(self, traced: ClosedGraph, reason: str) -> None:
        self.traced = traced
        self.reason = reason
        self.graph = launches(traced.graph)

    def inspect(self) -> str:
        """Why there is no program."""
        return f"applied node by node: {self.reason}\n{self.graph}"

    def entry(self, *tensors: EagerTensor) -> Any:
        """The result as the traced function gives it."""
        return self.traced.packed(self.run(tensors))

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Tensor, ...]:
        """The results for arguments of the right shapes and dtypes."""
        traced = self.traced
        values = [use.ref._read_() for use in traced.states]
        made = self.graph(*tensors, *traced.captured, *values)
        for use, value in zip(traced.written, made[traced.results:]):
            use.ref._commit_(value)
        return traced.owned(made)


def why_not(traced: ClosedGraph) -> str:
    """Why no native program can be made of a graph; empty where one can. The first time that a
    machine is asked, a compiler is tried, which takes seconds."""
    from gtape.devices.cpu import toolchain

    return never(traced) or toolchain.why_not()


def never(traced: ClosedGraph) -> str:
    """`why_not`, as far as it is known at once."""
    tensors = traced.graph.tensors
    elsewhere = next((t for t in tensors if not t._t.device.is_host), None)
    if elsewhere is not None:
        return f"it computes on {elsewhere.device}"
    if any(t.dtype is string for t in tensors):
        return "it holds strings"
    if any(t.dtype.name in FLOAT8 for t in tensors):
        return "it holds floats of one byte"
    return ""

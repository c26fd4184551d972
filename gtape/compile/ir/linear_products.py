"""Matrix products with what is done to them: bias and activation, and the gradient of a bias.

A GPU's library adds a bias, and applies relu or the tanh form of gelu, where it writes a product;
and it sums a gradient for the bias where it reads it for the weights (`gtape.ops.linalg.linear`).
"""

from __future__ import annotations

from typing import Any

from gtape.core.tensor import Tensor
from gtape.ops.elementwise.scalars import add
from gtape.ops.linalg.contraction import einsum_
from gtape.ops.linalg.linear import linear_, linear_gelu_, weight_gradients_
from gtape.ops.linalg.products import matmul_
from gtape.ops.nn.activations import gelu_tanh_, relu
from gtape.ops.shape.layout import sum_to_
from gtape.trace.graph import Graph, Node

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
    x, w, y = _letters(node)
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
    first, second, y = _letters(node)
    for a, b, pair in ((first, second, node.inputs), (second, first, node.inputs[::-1])):
        if y == a[-1:] + b[-1:] and a[:-1] == b[:-1] and len(set(a)) == len(a) > 1:
            return pair[0], pair[1]
    return None


def _letters(node: Node) -> tuple[str, str, str]:
    inputs, _, output = node.attrs[0].partition("->")
    first, _, second = inputs.partition(",")
    return first, second, output

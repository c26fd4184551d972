"""Fusion of a graph's own nodes: formulas that only one other formula reads become part of it.

For devices without compiled programs. A GPU runs one kernel for each formula that is left, and
NumPy goes over large arrays block by block, so that what lies between stays in the cache. Of floats
of two bytes a joined formula rounds what its scalar ops look into and its result, unless excess
precision is off (`gtape.core.modes`): then each formula stays one, and is rounded.
"""

from __future__ import annotations

from typing import Any

from gtape.core.modes import Modes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.cuda_text import NARROW
from gtape.opdef.elementwise import Elementwise, ElementwiseVjp
from gtape.opdef.scalar_graph import Expr, ScalarGraph, substitute, topological
from gtape.trace.graph import Graph, Node
from gtape.trace.symbolic_tensor import SymbolicTensor

#: Scalar ops in one formula: kernels and printed functions beyond that help nobody.
_LONGEST = 64


class _Formula:
    """What a node computes, as an expression of tensors outside it."""

    __slots__ = ("body", "inputs")

    def __init__(self, body: Expr, inputs: dict[str, Any]) -> None:
        self.body = body
        self.inputs = inputs


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
    name = f"t{id(tensor)}"
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

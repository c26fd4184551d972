"""From a traced graph to the compiler's form: composites open, ops become few kinds of nodes.

How far ops are taken apart is decided by the `Target`: what programs are printed as.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from gtape.compile import lowering  # noqa: F401  (attaches the rules to the ops)
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.ir.builder import Builder
from gtape.compile.ir.nodes import (
    Hosted,
    InputNode,
    IrModule,
    StridedLayout,
    Value,
    View,
    dense,
    v_root,
)
from gtape.compile.ir.rounding import exact
from gtape.core.context import init_scope, paused
from gtape.core.modes import Modes
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.composite import Composite
from gtape.opdef.cuda_text import C_TYPES, NARROW, servable
from gtape.opdef.elementwise import Elementwise
from gtape.trace.graph import Graph, Node
from gtape.trace.tracer import trace

if TYPE_CHECKING:
    from gtape.compile.ir.builder import Rule

class Target:
    """C++. Others differ in what they override."""

    #: Whether a product with a single row or column is a formula, which fuses with others.
    fuses_vectors = True
    #: Whether costly parts of formulas are values of their own, which other formulas find.
    shares_parts = False

    def spells(self, node: Node, inputs: Sequence[Value], spec: Spec) -> bool:
        """Whether there is text for the formula of an elementwise op."""
        op, dtypes = node.op, [v.dtype for v in inputs]
        if not servable([op.body()], dict(zip(op.params, dtypes))) or (
                spec.dtype.name.startswith("complex")):
            return False
        return Modes.excess_precision or exact(op.body(), [*dtypes, spec.dtype.name])

    def rule(self, op: Op, inputs: Sequence[Value]) -> Rule | None:
        """How an op is made of nodes."""
        return op.lower

    def opens(self, op: Op, inputs: Sequence[Value]) -> bool:
        """Whether an op of these values is what its definition gives. Array functions compute
        floats of two bytes in float32 and round once, and know what there is of no elements."""
        return all(v.dtype in C_TYPES and (
            op.literal or (v.size > 0 and v.dtype not in NARROW)) for v in inputs)


CPP = Target()


def lower(program: ClosedGraph, target: Target = CPP) -> IrModule:
    """The whole program: results, and what its states become."""
    builder = Builder(target)
    env: dict[int, Value] = {}
    graph = program.graph
    count = len(program.arguments)
    for i, symbol in enumerate(program.arguments):
        env[id(symbol)] = builder.source("argument", i, *_spec(symbol), i)
    for i, symbol in enumerate(graph.inputs[count: len(graph.inputs) - len(program.states)]):
        env[id(symbol)] = builder.source("capture", i, *_spec(symbol), i)
    for use in program.states:
        env[id(use.start)] = builder.source("state", use.ref, *_spec(use.start), use.ref._k)
    _nodes(builder, graph, env)
    outputs = [_value(builder, env, t) for t in graph.outputs]
    results = _results(builder, outputs[: program.results])
    writes = []
    taken = {v.number for v in results}
    for use, value in zip(program.written, outputs[program.results:]):
        made = _own(builder, value)
        # A result is the caller's own array, which a state must not change afterwards.
        if made.number in taken:
            made = builder.copied(made)
        taken.add(made.number)
        writes.append((use.ref, made))
    shared = frozenset(v_root(env[i]).number for i in program.shared if i in env)
    return IrModule(tuple(builder.nodes), tuple(results), tuple(writes), shared).live()


def _results(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """The results, each with memory of its own. What is only shaped otherwise is not copied."""
    made: list[Value] = []
    taken = {v.number for v in values if not isinstance(v.node, View)}
    roots: set[int] = set()
    for value in values:
        if _reshaped(value) and value.node.inputs[0].number not in taken | roots:
            roots.add(value.node.inputs[0].number)
            made.append(value)
            continue
        own = next((m for m in made if m is value), None) or _own(builder, value)
        while own.number in roots:
            own = builder.copied(own)
        taken.add(own.number)
        made.append(own)
    return made


def _reshaped(value: Value) -> bool:
    """Whether a value has all elements of one that is computed, in their order."""
    node = value.node
    if not isinstance(node, View) or isinstance(node.inputs[0].node, InputNode):
        return False
    return node.layout == StridedLayout(dense(value.shape)) and value.size == node.inputs[0].size


def _own(builder: Builder, value: Value) -> Value:
    """`value`, or a copy of it where it lies in memory that is not its own."""
    return builder.copied(value) if isinstance(value.node, (View, InputNode)) else value


def _spec(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    spec = tensor.spec
    return tuple(int(n) for n in spec.shape), spec.dtype.name


def _value(builder: Builder, env: dict[int, Value], tensor: Tensor) -> Value:
    found = env.get(id(tensor))
    if found is None:
        found = env[id(tensor)] = builder.constant(tensor._a, tensor.dtype.name)
    return found


def _nodes(builder: Builder, graph: Graph, env: dict[int, Value]) -> None:
    for node in graph.nodes:
        inputs = [_value(builder, env, t) for t in node.inputs]
        specs = [o.spec for o in node.outputs]
        for tensor, value in zip(node.outputs, _node(builder, node, inputs, specs)):
            env[id(tensor)] = value


def _node(builder: Builder, node: Node, inputs: list[Value], specs: list[Spec],
          ) -> Sequence[Value]:
    op, target = node.op, builder.target
    if isinstance(op, Composite):
        return _opened(builder, op, node, inputs)
    if isinstance(op, Elementwise) and target.spells(node, inputs, specs[0]):
        return [builder.elem(op.name, op.expression, inputs, specs[0].dtype.name,
                             tuple(specs[0].shape))]
    rule = target.rule(op, inputs)
    made = None if rule is None else rule(
        builder, inputs, dict(zip(op.attr_names, node.attrs)), specs)
    if made is not None:
        return [made] if isinstance(made, Value) else made
    if op.definition is not None and target.opens(op, inputs):
        return _opened(builder, op, node, inputs)
    return builder.add(Hosted(op, node.attrs, inputs),
                       [(tuple(s.shape), s.dtype.name) for s in specs])


def _opened(builder: Builder, op: Op, node: Node, inputs: list[Value]) -> list[Value]:
    """The nodes of an op's definition."""
    graph = definition(op, node.attrs, tuple(t.spec for t in node.inputs))
    env = {id(symbol): value for symbol, value in zip(graph.inputs, inputs)}
    _nodes(builder, graph, env)
    return [_value(builder, env, t) for t in graph.outputs]


# An entry is a graph of a dozen nodes. A network has a few dozen kinds and shapes of such ops, and
# its trace with the gradient, and those of other lengths, ask for them again.
@lru_cache(1024)
def definition(op: Op, attrs: tuple[object, ...], specs: tuple[Spec, ...]) -> Graph:
    assert op.definition is not None
    written = partial(op.definition, **dict(zip(op.attr_names, attrs)))
    with init_scope(), paused():  # kept for all: no trace or tape around may be part of it
        return trace(written, specs)

"""From a traced graph to the compiler's form: composites open, ops become few kinds of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from gtape.compile import lowering  # noqa: F401  (attaches the rules to the ops)
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.ir.builder import Builder, spelled
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
from gtape.core.excess_precision import excess_precision_enabled
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.printers.cuda import C_TYPES, NARROW
from gtape.trace.graph import Graph
from gtape.trace.tracer import trace


def lowered(program: ClosedGraph) -> IrModule:
    """The whole program: results, and what its states become."""
    builder = Builder()
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


def _value(builder: Builder, env: dict[int, Value], tensor: Any) -> Value:
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


def _node(builder: Builder, node: Any, inputs: list[Value], specs: list[Spec]) -> Sequence[Value]:
    op = node.op
    made: Any = None
    if isinstance(op, Composite):
        return _opened(builder, op, node, inputs)
    if isinstance(op, Elementwise):
        made = _elementwise(builder, op, inputs, specs[0])
    if made is None and op.lower is not None:
        made = op.lower(builder, inputs, dict(zip(op.attr_names, node.attrs)), specs)
    if made is None and op.definition is not None and all(map(_opens, inputs)):
        return _opened(builder, op, node, inputs)
    if made is None:
        return builder.add(Hosted(op, node.attrs, inputs),
                           [(tuple(s.shape), s.dtype.name) for s in specs])
    return [made] if isinstance(made, Value) else made


def _opens(value: Value) -> bool:
    """Whether an op of this value is what its definition gives. Array functions compute floats of
    two bytes in float32 and round once, and know what there is of no elements."""
    return value.size > 0 and value.dtype in C_TYPES and value.dtype not in NARROW


def _elementwise(builder: Builder, op: Elementwise, inputs: list[Value], spec: Spec,
                 ) -> Value | None:
    dtypes = [v.dtype for v in inputs]
    if not spelled(op.body(), op.params, dtypes) or spec.dtype.name.startswith("complex"):
        return None
    if not excess_precision_enabled() and not exact(op.body(), [*dtypes, spec.dtype.name]):
        return None
    return builder.elem(op.name, op.expression, inputs, spec.dtype.name, tuple(spec.shape))


def _opened(builder: Builder, op: Op, node: Any, inputs: list[Value]) -> list[Value]:
    """The nodes of an op's definition."""
    graph = definition(op, node.attrs, tuple(t.spec for t in node.inputs))
    env = {id(symbol): value for symbol, value in zip(graph.inputs, inputs)}
    _nodes(builder, graph, env)
    return [_value(builder, env, t) for t in graph.outputs]


# An entry is a graph of a dozen nodes. A network has a few dozen kinds and shapes of such ops, and
# its trace with the gradient, and those of other lengths, ask for them again.
@lru_cache(1024)
def definition(op: Op, attrs: tuple[Any, ...], specs: tuple[Spec, ...]) -> Graph:
    assert op.definition is not None
    written = partial(op.definition, **dict(zip(op.attr_names, attrs)))
    with init_scope(), paused():
        return trace(written, specs)

"""From a traced graph to steps of NumPy: composites open, formulas become their ufuncs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.ir.lower import definition
from gtape.compile.numpy.ufunc_tracing import Maps, base
from gtape.compile.numpy.values import (
    ArrayCall,
    ArrayProduct,
    ArrayValue,
    ArrayView,
    NumpyStep,
    Spread,
    Sum,
    TensorStep,
)
from gtape.core.op import Op
from gtape.opdef.broadcasting import axes_to_sum, stretches
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.primitive import Primitive
from gtape.opdef.scalar_graph import Expr, ScalarGraph, topological
from gtape.ops.linalg import products
from gtape.ops.reductions import reductions, sums
from gtape.ops.shape import casting, identity, layout
from gtape.trace.graph import Graph, Node, live_nodes
from gtape.trace.host_callback import HostCallback

Spec = tuple[tuple[int, ...], np.dtype]
#: Dtypes whose arithmetic NumPy knows itself.
_KINDS = "biufc"
#: Constants up to this size are looked at.
_LOOKED_AT = 1 << 12


class Steps:
    """`steps` make `outputs`: the results, then the new values of the states that are written."""

    def __init__(self, traced: ClosedGraph) -> None:
        self._maps = Maps()
        self._scalars = ScalarGraph()
        self._exprs: dict[int, ArrayValue | Any] = {}
        env: dict[int, ArrayValue] = {}
        graph, count = traced.graph, len(traced.arguments)
        last = len(graph.inputs) - len(traced.states)
        for i, symbol in enumerate(graph.inputs):
            place = (("argument", i) if i < count else ("capture", i - count) if i < last
                     else ("state", i - last))
            env[id(symbol)] = ArrayValue(*_spec(symbol), None, place)
        self.inputs = [env[id(symbol)] for symbol in graph.inputs]
        outputs = self._nodes(graph, env)
        self.outputs = outputs
        self.steps, _ = live_nodes(self._maps.steps, outputs,
                                   stays=lambda step: step.has_side_effect)

    # ------------------------------------------------------------------ nodes

    def _nodes(self, graph: Graph, env: dict[int, ArrayValue]) -> list[ArrayValue]:
        """The outputs of a graph whose inputs are in `env`."""
        for node in graph.nodes:
            inputs = [self._value(env, t) for t in node.inputs]
            for tensor, value in zip(node.outputs, self._node(node, inputs)):
                env[id(tensor)] = value
        return [self._value(env, t) for t in graph.outputs]

    def _value(self, env: dict[int, ArrayValue], tensor: Any) -> ArrayValue:
        found = env.get(id(tensor))
        if found is None:
            found = env[id(tensor)] = self._constant(tensor._a)
        return found

    def _constant(self, array: Any) -> ArrayValue:
        """An array of the trace; one number everywhere is a number, broadcast."""
        number = _everywhere(array)
        if number is None:
            return self._maps.constant(array)
        return self.spread(self._maps.constant(number), array.shape)

    def _node(self, node: Node, inputs: list[ArrayValue]) -> Sequence[ArrayValue]:
        op, specs = node.op, [_spec(t) for t in node.outputs]
        if isinstance(op, Elementwise) and not node.stays:
            return [self._elementwise(node, inputs, specs[0])]
        if isinstance(op, Composite):
            graph = definition(op, node.attrs, tuple(t.spec for t in node.inputs))
            return self._nodes(graph, {id(s): v for s, v in zip(graph.inputs, inputs)})
        if isinstance(op, Primitive):
            attrs = dict(zip(op.attr_names, node.attrs))
            rule = op.numpy_steps
            made = None if rule is None else rule(self, inputs, attrs, specs[0])
            return self._added(ArrayCall(op, attrs, inputs, specs, node.stays)) if (
                made is None) else [made]
        return self._applied(node, inputs, specs)

    def _applied(self, node: Node, inputs: list[ArrayValue],
                 specs: list[Spec]) -> Sequence[ArrayValue]:
        types = [t._t for t in node.inputs]
        has_side_effect = node.stays or not isinstance(node.op, (Elementwise, HostCallback))
        return self._added(TensorStep(node.op, node.attrs, inputs, types, specs, has_side_effect))

    def _added(self, step: NumpyStep) -> Sequence[ArrayValue]:
        self._maps.steps.append(step)
        return step.outputs

    # ------------------------------------------------------------------ formulas

    def _elementwise(self, node: Node, inputs: list[ArrayValue], spec: Spec) -> ArrayValue:
        if any(v.dtype.kind not in _KINDS for v in inputs) or spec[1].kind not in _KINDS:
            return self._applied(node, inputs, [spec])[0]
        made = self._evaluated(node.op.expression(self._scalars, [self._leaf(v) for v in inputs]))
        if not isinstance(made, ArrayValue):
            made = self._maps.constant(np.asarray(made, spec[1]))
        return self.spread(self._maps.cast(made, spec[1]), spec[0])

    def _leaf(self, value: ArrayValue) -> Expr:
        number = base(value).number
        if number is not None and (number != 0 or not np.signbit(number.real)):
            return self._scalars.constant(number.item())
        leaf = self._scalars.input(f"v{id(value)}")
        self._exprs[id(leaf)] = value
        return leaf

    def _evaluated(self, expr: Expr) -> Any:
        """The value of an expression, or a number."""
        known = self._exprs
        for node in topological([expr]):
            if id(node) not in known:
                known[id(node)] = node.value if node.op is None else self._maps.apply(
                    node.op, [known[id(a)] for a in node.args])
        return known[id(expr)]

    def mapped(self, function: np.ufunc, *args: Any) -> ArrayValue:
        """A ufunc of values and numbers."""
        return self._maps.ufunc(function, args)  # type: ignore[return-value]

    def cast(self, value: ArrayValue, dtype: np.dtype) -> ArrayValue:
        return self._maps.cast(value, dtype)

    # ------------------------------------------------------------------ arrangement

    def spread(self, value: ArrayValue, shape: tuple[int, ...]) -> ArrayValue:
        """A value broadcast to a shape."""
        if value.shape == shape:
            return value
        return self._maps.add(Spread([value], [(shape, value.dtype)]))

    def view(self, value: ArrayValue, shape: tuple[int, ...], text: str) -> ArrayValue:
        return self._maps.add(ArrayView(value, shape, text))

    def reshaped(self, value: ArrayValue, shape: tuple[int, ...]) -> ArrayValue:
        return value if value.shape == shape else self.view(
            value, shape, f"{{0}}.reshape({shape!r})")

    def sum(self, value: ArrayValue, axes: tuple[int, ...]) -> ArrayValue:
        """The sum over axes; they are gone."""
        return self._maps.add(Sum(value, axes)) if axes else value

    def product(self, a: ArrayValue, b: ArrayValue, transposed: tuple[bool, bool],
                spec: Spec) -> ArrayValue:
        return self._maps.add(ArrayProduct(a, b, transposed, spec))


def _everywhere(array: Any) -> Any:
    """The number that all elements of an array are, where that is seen at once."""
    if array.ndim == 0 or array.size == 0 or array.dtype.kind not in _KINDS:
        return None
    first = array[(0,) * array.ndim]
    if not any(array.strides):
        return first
    same = array.size <= _LOOKED_AT and array.tobytes() == first.tobytes() * array.size
    return first if same else None


def _spec(tensor: Any) -> Spec:
    spec = tensor.spec
    return tuple(int(n) for n in spec.shape), np.dtype(spec.dtype.as_numpy_dtype)


# ---------------------------------------------------------------------- primitives

#: (steps, inputs, attributes, spec) -> the value, or None where the array function is to be called.
_Rule = Callable[[Steps, list[ArrayValue], dict[str, Any], Spec], ArrayValue | None]


def _rule(*ops: Op) -> Callable[[_Rule], _Rule]:
    def declare(rule: _Rule) -> _Rule:
        for op in ops:
            op.numpy_steps = rule
        return rule

    return declare


@_rule(layout.identity_, identity.stop_gradient_, identity.assigned_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    return inputs[0]


@_rule(layout.optimization_barrier_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    return steps.view(inputs[0], spec[0], "{0}")


@_rule(layout.reshape_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    return steps.reshaped(inputs[0], spec[0])


@_rule(layout.transpose_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    return steps.view(inputs[0], spec[0], f"{{0}}.transpose({tuple(attrs['perm'])!r})")


@_rule(layout.broadcast_to_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    return steps.spread(inputs[0], spec[0])


@_rule(reductions.broadcast_in_dim_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any], spec: Spec) -> ArrayValue:
    kept = tuple(1 if i in attrs["axis"] else n for i, n in enumerate(spec[0]))
    return steps.spread(steps.reshaped(inputs[0], kept), spec[0])


def _total(steps: Steps, value: ArrayValue, axes: tuple[int, ...], shape: tuple[int, ...],
           ) -> ArrayValue | None:
    if value.dtype.name not in ("float32", "float64") or not value.size:
        return None
    return steps.reshaped(steps.sum(value, axes), shape)


@_rule(layout.sum_to_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    value = inputs[0]
    if stretches(value.shape, spec[0]):
        return steps.spread(value, spec[0])
    return _total(steps, value, axes_to_sum(value.shape, spec[0])[0], spec[0])


@_rule(reductions.reduce_sum_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    return _total(steps, inputs[0], tuple(attrs["axis"]), spec[0])


@_rule(reductions.reduce_mean_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    if spec[1].itemsize == 2:
        return None
    total = _total(steps, inputs[0], tuple(attrs["axis"]), spec[0])
    count = math.prod(inputs[0].shape[i] for i in attrs["axis"])
    return None if total is None else steps.mapped(np.divide, total, count)


@_rule(casting.cast_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    (value,) = inputs
    kinds = value.dtype.kind + spec[1].kind
    if kinds[0] not in "biuf" or kinds[1] not in _KINDS:
        return None
    return steps.spread(steps.cast(value, spec[1]), spec[0])


@_rule(sums.add_n_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    if spec[1].kind not in _KINDS:
        return None
    total = inputs[0]
    for value in inputs[1:]:
        total = steps.mapped(np.add, total, value)
    return steps.spread(total, spec[0])


@_rule(products.matmul_)
def _(steps: Steps, inputs: list[ArrayValue], attrs: dict[str, Any],
      spec: Spec) -> ArrayValue | None:
    if spec[1].kind not in "fc" or spec[1].itemsize == 2:
        return None
    a, b = inputs
    return steps.product(a, b, (attrs["transpose_a"], attrs["transpose_b"]), spec)

"""Open lengths: a trace made once for stand-ins, and again for other lengths without Python.

Of `reshape(x * 2, [-1])`, x of the shape [None, 3], the trace holds

    multiply    float32[n, 3]
    reshape     float32[3 n], of the attribute (3 n,)      and the guard n != 1

and for 8 rows both are applied again: float32[8, 3], and float32[24] of the attribute (24,). For
one row, where broadcasting is another, Python runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.core.context import paused
from gtape.core.convert import dim_value
from gtape.core.device import ArrayType, Device
from gtape.core.dtypes import DType
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import ConcreteDimNeeded, ShapeEnv, SymbolicDim, is_open
from gtape.core.tensor import Tensor
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise, ScalarGraphOp
from gtape.opdef.primitive import Primitive
from gtape.opdef.scalar_graph import topological
from gtape.trace.graph import Node
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.trace.tracer import StateUse, Tracer

#: What stands in for open lengths: numbers larger than what programs compare lengths with.
#: Apart from each other, and none of the first nine a multiple of another: lengths that are equal
#: or divide each other by chance would be noted as guards that no call holds.
_FIRST, _STEP = 1009, 104


class PolymorphicGraph:
    """A trace for open lengths.

    Args:
        shapes: the shapes of the tensors in the call.
        open_axes: (tensor, axis) of every open length.
        run: gives the trace for shapes.

    Raises:
        ConcreteDimNeeded: the function, or an operation in it, needs the lengths.
    """

    def __init__(self, shapes: Sequence[Any], open_axes: Sequence[tuple[int, int]],
                 run: Callable[[Sequence[Any]], ClosedGraph]) -> None:
        self.open_axes = tuple(open_axes)
        self.alike = alike(shapes, open_axes)
        self.env = ShapeEnv()
        stand_ins = dict(zip(sorted(set(self.alike)), itertools.count(_FIRST, _STEP)))
        wide = [list(dims) for dims in shapes]
        for i, ((tensor, axis), group) in enumerate(zip(open_axes, self.alike)):
            wide[tensor][axis] = self.env.length(i, stand_ins[group])
        try:
            self.traced = run([tuple(dims) for dims in wide])
        finally:
            self.env.closed = True
        if self.env.needed or not self._sound():
            raise ConcreteDimNeeded

    # ------------------------------------------------------------------ trust

    def _sound(self) -> bool:
        """Whether the nodes can be applied for other lengths, and write what fits."""
        traced = self.traced
        if traced.captured or any(is_open(use.present.spec.shape) for use in traced.states) or any(
                getattr(use.ref, "_declared", None) is not None for use in traced.states):
            return False
        return all(_can_be_applied(node) for node in traced.graph.nodes)

    # ------------------------------------------------------------------ other lengths

    def at(self, shapes: tuple[tuple[int, ...], ...]) -> ClosedGraph | None:
        """The trace for other shapes; None where the Python code might have done otherwise."""
        lengths = [shapes[tensor][axis] for tensor, axis in self.open_axes]
        if not self.env.hold(lengths):
            return None
        with paused():
            try:
                # Node by node: none of the function's Python runs, and nothing is computed.
                return _resized(self.traced, lengths)
            except Exception:
                # The function itself will say it better.
                return None


def _can_be_applied(node: Node) -> bool:
    """Whether a node is all in its inputs and attributes: a hosted step may hide lengths."""
    op = node.op
    if op is dim_value:
        return True
    if not isinstance(op, (Primitive, Elementwise, Composite)) or node.has_side_effect:
        return False
    return _is_plain(node.attrs) and not (isinstance(op, ScalarGraphOp) and any(
        type(e.value) is SymbolicDim for e in topological([op.body()])))


def _is_plain(value: object) -> bool:
    """Whether an attribute is something in which every SymbolicDim is found."""
    if isinstance(value, (tuple, frozenset)):
        return all(_is_plain(v) for v in value)
    return value is None or value is ... or isinstance(
        value, (SymbolicDim, str, bytes, bool, int, float, complex, DType, ArrayType, Device,
                np.dtype, np.number, type))


def _resized(traced: ClosedGraph, lengths: Sequence[int]) -> ClosedGraph | None:
    tracer = Tracer()
    values: dict[int, Tensor] = {}

    def fresh(old: Tensor) -> SymbolicTensor:
        new = tracer.symbol(Spec(_at(old.spec.shape, lengths), old.dtype), old._t)
        values[id(old)] = new
        return new

    arguments = [fresh(symbol) for symbol in traced.arguments]
    starts = [fresh(use.start) for use in traced.states]
    if not tracer.run(lambda: all(_again(n, values, lengths) for n in traced.graph.nodes)):
        return None
    tracer.finished = True
    results = [values.get(id(v), v) for v in traced.graph.outputs[: traced.results]]
    left = {id(use): v for use, v in zip(traced.written, traced.graph.outputs[traced.results:])}
    for use, start in zip(traced.states, starts):
        again = tracer.states[use.ref._k] = StateUse(use.ref, start)
        present = left.get(id(use), use.present)
        again.present = values.get(id(present), present)
    return ClosedGraph(arguments, tracer, results, traced.structure)


def _again(node: Node, values: dict[int, Tensor], lengths: Sequence[int]) -> bool:
    """Apply a node for other lengths; whether the results have the shapes that were foretold."""
    results = node.op.reapply([values.get(id(v), v) for v in node.inputs], _at(node.attrs, lengths))
    values.update({id(v): o for v, o in zip(node.outputs, results)})
    return len(results) == len(node.outputs) and all(
        o.spec.shape == _at(v.spec.shape, lengths) for v, o in zip(node.outputs, results))


def _at(value: object, lengths: Sequence[int]) -> Any:
    """An attribute for these open lengths."""
    if type(value) is SymbolicDim:
        return value.at(lengths)
    if type(value) is tuple:
        return tuple([_at(v, lengths) for v in value])
    if isinstance(value, tuple):
        return type(value)(*[_at(v, lengths) for v in value])
    return value


def alike(shapes: Sequence[tuple[int | None, ...]], open_axes: Sequence[tuple[int, int]],
          ) -> tuple[int, ...]:
    """For every open length the first that is equal to it: equal ones may have to be."""
    lengths = [shapes[tensor][axis] for tensor, axis in open_axes]
    return tuple([lengths.index(n) for n in lengths])


def open_axes(shapes: Sequence[Any], specs: Sequence[Any]) -> list[tuple[int, int]]:
    """(tensor, axis) of the lengths that the specs leave open."""
    def left_open(shape: TensorShape, axis: int) -> bool:
        return shape.dims is None or shape.dims[axis] is None

    return [(i, axis) for i, (dims, spec) in enumerate(zip(shapes, specs))
            for axis in range(len(dims)) if left_open(spec.shape, axis)]

"""Choices between values: both branches of a traced condition are computed, where that shows only
in the time it takes, and costs less time than a step in Python that applies one of them."""

from __future__ import annotations

import math

from gtape.core.context import paused
from gtape.core.dtypes import bool_
from gtape.core.symbolic_dim import is_open
from gtape.core.tensor import Tensor
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.primitive import Primitive
from gtape.ops.elementwise.scalars import where
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.trace.graph import Node
from gtape.trace.subgraph import ClosedOver

#: The primitives that go over their data once.
_PASSES = frozenset((
    "assigned_", "broadcast_in_dim_", "broadcast_to_", "cast_", "changed_rows_", "identity_",
    "optimization_barrier_", "reduce_all_", "reduce_any_", "reduce_max_", "reduce_mean_",
    "reduce_min_", "reduce_sum_", "reshape_", "scatter_rows_", "stack_", "stop_gradient_",
    "sum_to_", "transpose_"))
#: Elements computed for one that is read or assigned, and those that never count. A step in Python
#: copies what it reads and assigns, so that it does not save much more.
_WORK, _FREE = 16, 1 << 14


def both_ways(pred: Tensor, inputs: ClosedOver) -> bool:
    """Whether both branches may be computed: without errors, random numbers, steps in Python or
    other effects, no gradient through a result, and work in proportion to the data."""
    graphs = [body.graph for body in inputs.bodies]
    nodes = [node for graph in graphs for node in graph.nodes]
    tensors = [t for graph in graphs for t in graph.tensors]
    if (not all(map(_passes, nodes)) or any(is_open(t.spec.shape) for t in tensors)
            or any(t._t.differentiable for t in inputs.bodies[0].results)
            or any(t._t.device is not pred._t.device for t in tensors)):
        return False
    work = sum(_size(t) for node in nodes for t in node.outputs)
    data = sum(_size(t) for graph in graphs for t in (*graph.inputs, *graph.outputs))
    return work <= _WORK * data + _FREE


def _passes(node: Node) -> bool:
    op = node.op
    return not node.stays and (isinstance(op, Elementwise) or (
        isinstance(op, Primitive) and op.name in _PASSES))


def _size(tensor: Tensor) -> int:
    return math.prod(tensor.spec.shape)


def computed_both(pred: Tensor, inputs: ClosedOver) -> list[Tensor]:
    """The results of the first body where `pred` holds, else those of the second; then what they
    leave in the states that one of them writes.

    Raises:
        ValueError: a body changes the shape of a state.
    """
    inputs.state_types()  # for its error
    captured, state = inputs.split(inputs.values())
    ends = []
    with paused():
        held = cast(reshape_(pred, shape=()), bool_)
        for body in inputs.bodies:
            after = list(state)
            result = inputs.apply(body, (), captured, after, False)
            ends.append([*result, *(after[i] for i in inputs.written)])
        return [where(held, a, b) for a, b in zip(*ends)]

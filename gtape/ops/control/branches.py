"""Choices of a traced function: every branch is traced, and at each call one of them is applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import bool_, int32
from gtape.core.errors import InvalidArgumentError, NotTraceableError, UntracedBranchError
from gtape.core.op import case
from gtape.core.symbolic_dim import is_open
from gtape.core.tensor import Tensor
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.elementwise.scalars import where
from gtape.ops.indexing.sorting import argmax
from gtape.ops.reductions.reductions import reduce_sum
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import stack_
from gtape.trace.graph import Graph, Node
from gtape.trace.host_steps import HostCallback
from gtape.trace.subgraph import ClosedOver, Subgraph, SubgraphOp, pack


def choose(name: str, chosen: Tensor, functions: Sequence[Callable[[], object]],
           at: Callable[[Any], int], labels: Sequence[str]) -> Any:
    """The result of `functions[at(number)]()`, where `chosen` has the number at every call. Raises
    TypeError: dtypes of results differ from branch to branch, or their containers do; ValueError:
    structures or shapes differ, or one gives None where another gives a value."""
    inputs = _traced(name, functions, labels)
    return _left(inputs, _one(name, chosen, inputs, at))


def _traced(name: str, functions: Sequence[Callable[[], object]], labels: Sequence[str],
            ) -> ClosedOver:
    bodies = [Subgraph(fn, (), f"{name}: {label}") for fn, label in zip(functions, labels)]
    for body, label in zip(bodies[1:], labels[1:]):
        _check_alike(name, (bodies[0], labels[0]), (body, label))
    return ClosedOver(bodies)


def _one(name: str, chosen: Tensor, inputs: ClosedOver,
         at: Callable[[Any], int]) -> Sequence[Tensor]:
    """What the body that is chosen gives and leaves, by a step in Python."""
    types = [*((t.spec, t._t) for t in inputs.bodies[0].results), *inputs.state_types()]

    def run(values: tuple[Tensor, ...], again: bool) -> list[Tensor]:
        captured, state = inputs.split(values[1:])
        body = inputs.bodies[at(np.asarray(values[0]._peek()).reshape(-1)[0])]
        result = inputs.apply(body, (), captured, state, again)
        return [*result, *(state[i] for i in inputs.written)]

    return SubgraphOp(name, run, types, inputs)(chosen, *inputs.values())


def _left(inputs: ClosedOver, made: Sequence[Tensor]) -> Any:
    """The result of a choice; what it leaves in states is stored."""
    first = inputs.bodies[0]
    count = len(first.results)
    inputs.store(made[count:])
    return pack(first.structure, made[:count])


def _check_alike(name: str, one: tuple[Subgraph, str], other: tuple[Subgraph, str]) -> None:
    (a, first), (b, second) = one, other
    try:
        nest.assert_same_structure(a.structure, b.structure)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {first} and {second} must return the same structure: {error}"
                          ) from None
    for x, y in zip(nest.flatten(a.structure), nest.flatten(b.structure)):
        if (x is None) != (y is None):
            none, value = (first, second) if x is None else (second, first)
            raise ValueError(f"{name}: {none} returns None where {value} returns a tensor; both "
                             f"must return a value there, or both None")
    for p, q in zip(a.results, b.results):
        if p.dtype is not q.dtype:
            raise TypeError(f"{name}: the results must have one dtype; {first} returns {p.spec}, "
                            f"{second} {q.spec}. Write tf.cast(result, tf.{p.dtype.name})")
        if p.spec != q.spec:
            raise ValueError(f"{name}: the results must have one shape in a traced function; "
                             f"{first} returns {p.spec}, {second} {q.spec}")
        if p._t is not q._t:
            raise InvalidArgumentError(f"{name}: the results must live on one device; {first} "
                                       f"returns {p._t}, {second} {q._t}")


def chosen_cond(pred: Tensor, true_fn: Callable[[], object], false_fn: Callable[[], object]) -> Any:
    """`true_fn()` at the calls for which `pred` holds, else `false_fn()`. Raises NotTraceableError:
    a function cannot be traced, and no call could run as Python instead."""
    bodies = []
    for fn, label, other in ((true_fn, "true_fn", false_fn), (false_fn, "false_fn", true_fn)):
        try:
            bodies.append(Subgraph(fn, (), f"cond: {label}"))
        except NotTraceableError as reason:
            suppose(pred, label == "false_fn", reason)
            return other()
    _check_alike("cond", (bodies[0], "true_fn"), (bodies[1], "false_fn"))
    inputs = ClosedOver(bodies)
    result = computed_both(pred, inputs) if both_ways(pred, inputs) else (
        _one("cond", pred, inputs, lambda held: 0 if held else 1))
    return _left(inputs, result)


def chosen_case(preds: Sequence[object], functions: Sequence[Callable[[], object]],
                default: Callable[..., object] | None, exclusive: bool) -> Any:
    """The result of the first function whose condition holds at a call, else of `default`. Raises
    InvalidArgumentError: at a call, where none holds and there is no default, or several do and
    `exclusive` is true."""
    held = [reshape_(cast(convert(p), bool_), shape=()) for p in preds]
    every = [*functions, *([] if default is None else [default])]

    def at(number: int) -> int:
        # The numbers that `_first` gives where not one holds.
        if number == -1:
            raise InvalidArgumentError("case: the conditions must exclude each other; several "
                                       "hold. Leave out exclusive=True to take the first")
        if number == len(every):
            raise InvalidArgumentError("case: no condition holds; give a default function")
        return int(number)

    labels = [f"function {i}" for i in range(len(functions))] + ["default"]
    chosen = _first(cast(stack_(*held, axis=0), int32), exclusive=bool(exclusive))
    return choose("case", chosen, every, at, labels)


def _first(held: Tensor, exclusive: bool) -> Tensor:
    """The position of the first 1, their number if there is none, -1 if there must not be two."""
    total = reduce_sum(held)
    result = where(total > 0, argmax(held, 0, int32), held.spec.shape[0])
    return where(total > 1, -1, result) if exclusive else result


def chosen_switch(index: Tensor, functions: Sequence[Callable[[], Any]],
                  default: Callable[..., object] | None) -> Any:
    """The result of `functions[index]()`; out of range that of `default`, or of the last."""
    every = [*functions, *([] if default is None else [default])]

    def at(number: int) -> int:
        # The default, or the last branch, as in TensorFlow.
        return int(number) if 0 <= number < len(functions) else len(every) - 1

    labels = [f"branch {i}" for i in range(len(functions))] + ["default"]
    return choose("switch_case", index, every, at, labels)


# ---------------------------------------------------------------- both branches
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
    # Both branches run at every call: an error, a draw or a printed line of the one not taken
    # would show.
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
    leave in the states that one of them writes. Raises ValueError: a body changes the shape of a
    state."""
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


# ---------------------------------------------------------------- premises
@primitive(nondifferentiable=True)
def premise_(xp: ArrayModule, held: Array, *, expected: bool, why: str) -> Array:
    """y = held, a condition that must be `expected`."""
    if bool(held) is not expected:
        raise UntracedBranchError(why)
    return held


premise_.infer(lambda held, **_: held)
premise_.has_side_effect = True
premise_.cases = [case(np.array(True), expected=True, why="x", dtypes=("bool",))]


def suppose(pred: Tensor, expected: bool, reason: NotTraceableError) -> None:
    """Let the present trace serve only the calls for which `pred` is `expected`. Raises
    NotTraceableError: the `reason` given; there is no Python code to run for other calls."""
    if not tracer_now().outermost.replaceable:
        raise reason
    with paused():
        premise_(cast(reshape_(pred, shape=()), bool_), expected=expected, why=str(reason))


def check_premises(graph: Graph, replaceable: bool) -> None:
    """See to it that a call can run as Python where a premise does not hold. Raises
    NotTraceableError: it cannot, or may have printed a line by then, or done something else that
    would be done again."""
    # Python runs such a call from its start: what was done before the premise would be done twice.
    done = False
    for node in graph.nodes:
        steps = list(_steps(node))
        premises = [step for step in steps if step.op is premise_]
        deeds = any(step.has_side_effect for step in steps if step.op is not premise_)
        if premises and (done or not replaceable or deeds):
            raise NotTraceableError(premises[0].attrs[1])
        done = done or deeds


def _steps(node: Node) -> Iterator[Node]:
    """The node, or those of the graphs that it applies, which may be applied often."""
    parts = node.op.parts if isinstance(node.op, HostCallback) else ()
    if not parts:
        yield node
    for part in parts:
        for inner in part.nodes:
            yield from _steps(inner)


def has_premises(graph: Graph) -> bool:
    """Whether there are calls that the graph does not serve."""
    return any(step.op is premise_ for node in graph.nodes for step in _steps(node))

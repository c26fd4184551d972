"""Traces: functions of elements as graphs, which are applied, compiled where that is done often,
and made functions of many elements at once.

They need AutoGraph, the compiler and vmap, which come with this module.

A trace that draws from the streams of `tf.random` moves their positions on by as many numbers for
every element. The numbers of many elements are then one stretch of a stream: they are drawn at
once, and are those that the elements would have drawn one after the other. A choice between two
branches becomes a choice between their results, so that it can be made for many elements at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.autograph import convert
from gtape.compile.compile_cost import applying_seconds
from gtape.compile.frontend import closed_graph
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.frontend.trace_cache import Executable
from gtape.core import nest
from gtape.core.context import init_scope
from gtape.core.device import CPU, on
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec
from gtape.data import elements
from gtape.opdef.elementwise import Elementwise
from gtape.ops.control.branches import has_premises
from gtape.ops.control.loops import vectorized_map
from gtape.ops.elementwise.scalars import where
from gtape.ops.random.draws import Draw, _sampled
from gtape.ops.random.streams import StreamState, streams
from gtape.trace.graph import Graph
from gtape.trace.subgraph import SubgraphOp
from gtape.trace.tracer import Tracer, trace
from gtape.vmap.batch_trace import NEEDS_ELEMENTS

#: A graph is compiled when applying its nodes has taken about so many seconds, as compiling does.
_HOT = 0.1
#: Ops that move values, or compute each result from values of one row in an order that does not
#: depend on the number of rows.
_ROWWISE = frozenset((
    "identity_", "reshape_", "transpose_", "expand_dims_", "squeeze_", "broadcast_to_", "getitem_",
    "concat_", "stack_", "unstack_", "split_", "pad_", "cast_", "gather_", "one_hot_", "reverse_",
    "slice_", "strided_slice_", "tile_", "stop_gradient_"))


def traced(function: Callable[..., object], specs: Sequence[Any], arrange: Callable[[Any], Any],
           shapes: Sequence[Any]) -> Any:
    """The trace of a function of elements with leaves of these specs and shapes. Raises
    Untraceable: there is none."""
    with init_scope(), on(CPU):
        # Its own states: variables and streams are inputs of the trace, so that a pass reads them
        # as they are then, not as they were while tracing.
        tracer = Tracer(None, own_states=True)
        leaves: list[Any] = []
        symbols = []
        for dims, leaf in zip(shapes, specs):
            if not isinstance(leaf, TensorSpec):
                leaves.append(None)
                continue
            symbols.append(tracer.symbol(Spec(dims, leaf.dtype), CPU.typed(leaf.dtype)))
            leaves.append(symbols[-1])
        given = elements.arguments(arrange(leaves))
        body = convert(function)
        name = str(getattr(function, "__name__", type(function).__name__))
        try:
            trace = closed_graph.trace_closed(
                lambda: elements.result_of(body(*given)), tracer, symbols, name)
        except NEEDS_ELEMENTS as error:
            raise elements.Untraceable from error
    # A variable made inside would be made once, a captured tensor belongs to a trace that is over,
    # and premises hold for the values of one call: each needs the Python code every time.
    if tracer.created or trace.captured or has_premises(trace.graph):
        raise elements.Untraceable
    return trace


class Plan:
    """A trace, applied node by node, and compiled when that has been done often."""

    __slots__ = ("_each", "_entry", "_left", "_pack", "_taken", "traced")

    def __init__(self, traced: ClosedGraph) -> None:
        self.traced = traced
        #: For each result the places of the array and of the indices, where all are gathered.
        self._taken = _gathered(traced)
        self._pack: Any = elements.packer(self.results) if self._taken else None
        # Without nodes there is nothing to compile.
        self._left = _HOT if traced.graph.nodes else math.inf
        self._each = applying_seconds(traced.graph)
        self._entry: Any = None

    @property
    def stateful(self) -> bool:
        """Whether it reads or changes a variable, or draws random numbers."""
        return bool(self.traced.states)

    @property
    def pure(self) -> bool:
        """Whether it neither reads nor changes anything but its arguments."""
        return not self.traced.states and not any(
            node.op.has_side_effect for node in self.traced.graph.nodes)

    @property
    def results(self) -> Any:
        """The specs of the results."""
        trace = self.traced
        specs = trace.packed([TensorSpec(t.spec.shape, t.dtype)
                              for t in trace.graph.outputs[: trace.results]])
        return nest.map_structure(lambda s: NoneTensorSpec() if s is None else s, specs)

    def of_rows(self) -> tuple[Callable[..., Any], list[TensorSpec], Draws | None] | None:
        """A function of all rows at once, the specs of what it takes besides, and what draws that;
        None where there is none."""
        graph, specs, draws = self.traced.graph, [], None
        if self.stateful:
            try:
                draws = Draws(self.traced)
            except Undrawable:
                return None
            graph, specs = draws.plain(), [TensorSpec(*spec) for spec in draws.specs]
        # A reduction may add in another order for many rows than for one, and an element would
        # depend on the batch that it is computed in.
        if not _batchable(graph):
            return None

        def rows(*leaves: Tensor) -> tuple[object, ...]:
            return tuple(vectorized_map(lambda xs: graph(*xs), list(leaves),
                                        # A loop over the rows would be slower than the rows one by
                                        # one, which need no stacking.
                                        fallback_to_while_loop=False))

        return rows, specs, draws

    def __call__(self, leaves: Sequence[EagerTensor]) -> Any:
        # The steady case first: one comparison before the compiled program.
        return self._entry(*leaves) if self._entry is not None else self.chosen()(leaves)

    def chosen(self) -> Callable[[Sequence[EagerTensor]], Any]:
        """What applies the trace this time."""
        if self._taken is not None:
            return self._rows
        self._left -= self._each
        if self._left >= 0:
            return self.traced.apply
        if self._entry is None:
            executable = Executable(self.traced)
            executable.compile()
            self._entry = executable.entry
        return self._run

    def _run(self, leaves: Sequence[EagerTensor]) -> Any:
        return self._entry(*leaves)

    def _rows(self, leaves: Sequence[EagerTensor]) -> Any:
        rows = _taken(self._taken or (), leaves)
        return self.traced.apply(leaves) if rows is None else self._pack(rows)


def _gathered(traced: ClosedGraph) -> list[tuple[int, int]] | None:
    """The places of the arguments (array, indices) of every result, where these are rows of
    arguments and nothing else: that needs no program."""
    places = {id(symbol): i for i, symbol in enumerate(traced.arguments)}
    gathered = {}
    for node in traced.graph.nodes:
        if node.op.name != "gather_" or node.attrs != (0,) or not all(
                id(x) in places for x in node.inputs):
            return None
        gathered[id(node.outputs[0])] = (places[id(node.inputs[0])], places[id(node.inputs[1])])
    results = [gathered.get(id(t)) for t in traced.graph.outputs]
    return None if not results or None in results else results  # type: ignore[return-value]


def _taken(places: Sequence[tuple[int, int]], leaves: Sequence[EagerTensor]) -> Any:
    """The rows; None where an index is out of range."""
    results = []
    checked = -1
    for at, by in places:
        indices, array = leaves[by]._a, leaves[at]
        # NumPy counts negative indices from the end, where the trace refuses them.
        if by != checked and indices.size and indices.min() < 0:
            return None
        checked = by
        try:
            results.append(EagerTensor(array._a.take(indices, axis=0), array._t))
        except IndexError:
            return None
    return results


def _batchable(graph: Any) -> bool:
    """Whether it gives the same, bit for bit, for all rows at once as for one after the other:
    every node is elementwise, moves values only, or says how many rows are done."""
    return all(isinstance(node.op, Elementwise) or node.op.name in _ROWWISE
               or getattr(node.op, "rows", None) is not None for node in graph.nodes)


#: How many numbers a place of a stream gives, by distribution and bits of a number, where each
#: number depends on its own place alone.
_PER_PLACE = {("uniform", 32): 4, ("uniform", 64): 2, ("normal", 32): 4, ("normal", 64): 2,
              ("uniform_int", 32): 2, ("uniform_int", 64): 2}
#: Larger draws are made one after the other: a stretch of the stream has most places for nothing.
_SMALL = 64


class Undrawable(Exception):
    """The numbers of many elements cannot be drawn at once."""


class Draws:
    """The draws of a trace. Raises Undrawable: it touches other state than random streams, or draws
    in a branch, or numbers that depend on more than their place."""

    def __init__(self, traced: Any) -> None:
        self._traced = traced
        # A variable may change from one element to the next; a stream moves by what was drawn,
        # which is known beforehand.
        if traced.captured or not all(isinstance(u.ref, StreamState) for u in traced.states):
            raise Undrawable
        #: By the id of a position: the number of the state, and by how much it has moved.
        self._places = {id(use.start): (i, 0) for i, use in enumerate(traced.states)}
        #: (number of the state, offset, node) of every draw.
        self._draws: list[tuple[int, int, Any]] = []
        for node in traced.graph.nodes:
            self._note(node)
        ends = {id(use.ref): self._places.get(id(use.present)) for use in traced.states}
        if None in ends.values():
            raise Undrawable
        #: How many numbers of each stream an element takes.
        self._counts = [self._places[id(use.present)][1] for use in traced.states]

    def _note(self, node: Any) -> None:
        at = [self._places[id(v)] for v in node.inputs if id(v) in self._places]
        if isinstance(node.op, Draw):
            if len(node.inputs) > 1 or not at or _key(node) not in _PER_PLACE:
                raise Undrawable
            self._draws.append((*at[0], node))
        elif at:
            moved = node.inputs[1]
            if node.op.name != "add" or type(moved) is not EagerTensor or len(at) > 1:
                raise Undrawable
            _, _, count, high = moved._a.tolist()
            if high:
                raise Undrawable
            self._places[id(node.outputs[0])] = at[0][0], at[0][1] + count
        elif isinstance(node.op, SubgraphOp) and (node.op.name != "cond" or node.op.inputs.states):
            raise Undrawable

    @property
    def specs(self) -> list[Spec]:
        """Of the numbers that an element draws."""
        return [Spec(tuple(node.attrs[0]), node.attrs[1].dtype) for _, _, node in self._draws]

    def plain(self) -> Graph:
        """The graph of a function of an element's leaves, then of the numbers that it draws."""
        arguments = [v.spec for v in self._traced.arguments]
        return trace(self._applied, [*arguments, *self.specs])

    def _applied(self, *values: Tensor) -> tuple[Tensor, ...]:
        traced = self._traced
        given = [*traced.arguments, *(node.outputs[0] for _, _, node in self._draws)]
        env: dict[int, Any] = {id(v): a for v, a in zip(given, values)}
        for node in traced.graph.nodes:
            if isinstance(node.op, Draw) or any(id(o) in self._places for o in node.outputs):
                continue
            inputs = [env.get(id(v), v) for v in node.inputs]
            outputs = _either(node.op, inputs) if isinstance(node.op, SubgraphOp) else (
                node.op.reapply(inputs, node.attrs))
            env.update({id(v): o for v, o in zip(node.outputs, outputs)})
        return tuple([env.get(id(v), v) for v in traced.graph.outputs[: traced.results]])

    def numbers(self, rows: int) -> list[EagerTensor]:
        """What so many elements draw next, each array with a first axis for the elements."""
        starts = [streams.take(use.ref._op_seed, rows * count)
                  for use, count in zip(self._traced.states, self._counts)]
        drawn_arrays = []
        for state, offset, node in self._draws:
            shape, array_type = node.attrs[:2]
            count, size = self._counts[state], math.prod(shape)
            key, start = starts[state]

            def drawn(at: int, number: int, node: Any = node, key: Any = key) -> np.ndarray:
                sample: Any = _sampled(node.op.name, key, at, (number,), node.attrs[1], (),
                                       dict(node.attrs[2]))
                return sample

            if size <= _SMALL:
                each = _PER_PLACE[_key(node)]
                every = drawn(start, rows * count * each).reshape(rows, count * each)
                part = np.ascontiguousarray(every[:, offset * each:offset * each + size])
            else:
                part = np.stack([drawn(start + row * count + offset, size) for row in range(rows)])
            drawn_arrays.append(EagerTensor(part.reshape(rows, *shape), array_type))
        return drawn_arrays


def _key(node: Any) -> tuple[str, int]:
    return node.op.name, 8 * np.dtype(node.attrs[1].dtype.np_dtype).itemsize


def _either(op: SubgraphOp, values: Sequence[Tensor]) -> list[Tensor]:
    """The results of one of two branches, of which both are computed."""
    # Both branches are run on every row: they have no side effects, or there would be no plain
    # graph.
    captured, state = op.inputs.split(values[1:])
    one, other = (op.inputs.apply(body, (), captured, state, False) for body in op.inputs.bodies)
    return [where(values[0], a, b) for a, b in zip(one, other)]

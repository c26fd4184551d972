"""Traces: functions of elements as graphs, which are applied, compiled where that is done often,
and made functions of many elements at once.

They need AutoGraph, the compiler and vmap, which come with this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gtape.autograph import convert
from gtape.compile.compile_cost import applying_seconds
from gtape.compile.frontend import closed_graph
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.frontend.executable import Executable
from gtape.core import nest
from gtape.core.context import init_scope
from gtape.core.device import CPU
from gtape.core.placement import on
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec
from gtape.data import elements
from gtape.data.draws import Draws, Undrawable
from gtape.opdef.elementwise import Elementwise
from gtape.ops.control.loops import vectorized_map
from gtape.ops.control.premises import has_premises
from gtape.trace.tracer import Tracer
from gtape.vmap.vectorized_map import NEEDS_ELEMENTS

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
    """The trace of a function of elements with leaves of these specs and shapes.

    Raises:
        Untraceable: there is none.
    """
    with init_scope(), on(CPU):
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
        if not _batchable(graph):
            return None

        def rows(*leaves: Tensor) -> tuple[object, ...]:
            return tuple(vectorized_map(lambda xs: graph(*xs), list(leaves),
                                        fallback_to_while_loop=False))

        return rows, specs, draws

    def __call__(self, leaves: Sequence[EagerTensor]) -> Any:
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

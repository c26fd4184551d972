"""Plans: what applies a trace: gathers by NumPy, nodes one by one, or a compiled program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.compile_cost import applying_seconds
from gtape.core import nest
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec
from gtape.data import elements

#: A graph is compiled when applying its nodes has taken about so many seconds, as compiling does.
_HOT = 0.1


class Plan:
    """A trace, applied node by node, and compiled when that has been done often."""

    __slots__ = ("_each", "_entry", "_left", "_pack", "_taken", "traced")

    def __init__(self, traced: Any) -> None:
        self.traced = traced
        #: For each result the places of the array and of the indices, where all are gathered.
        self._taken = _gathered(traced)
        self._pack: Any = elements.packer(results(traced)) if self._taken else None
        self._left = _HOT if traced.graph.nodes else math.inf
        self._each = applying_seconds(traced.graph)
        self._entry: Any = None

    def __call__(self, leaves: Sequence[EagerTensor]) -> Any:
        return self._entry(*leaves) if self._entry is not None else self.chosen()(leaves)

    def chosen(self) -> Callable[[Sequence[EagerTensor]], Any]:
        """What applies the trace this time."""
        if self._taken is not None:
            return self._rows
        self._left -= self._each
        if self._left >= 0:
            return self.traced.apply  # type: ignore[no-any-return]
        if self._entry is None:
            from gtape.compile.frontend.executable import Executable

            made = Executable(self.traced)
            made.compile()
            self._entry = made.entry
        return self._run

    def _run(self, leaves: Sequence[EagerTensor]) -> Any:
        return self._entry(*leaves)

    def _rows(self, leaves: Sequence[EagerTensor]) -> Any:
        found = _taken(self._taken or (), leaves)
        return self.traced.apply(leaves) if found is None else self._pack(found)


def _gathered(traced: Any) -> list[tuple[int, int]] | None:
    """The places of the arguments (array, indices) of every result, where these are rows of
    arguments and nothing else: that needs no program."""
    places = {id(symbol): i for i, symbol in enumerate(traced.arguments)}
    made = {}
    for node in traced.graph.nodes:
        if node.op.name != "gather_" or node.attrs != (0,) or not all(
                id(x) in places for x in node.inputs):
            return None
        made[id(node.outputs[0])] = (places[id(node.inputs[0])], places[id(node.inputs[1])])
    results = [made.get(id(t)) for t in traced.graph.outputs]
    return None if not results or None in results else results  # type: ignore[return-value]


def _taken(places: Sequence[tuple[int, int]], leaves: Sequence[EagerTensor]) -> Any:
    """The rows; None where an index is out of range."""
    results = []
    checked = -1
    for at, by in places:
        indices, array = leaves[by]._a, leaves[at]
        if by != checked and indices.size and indices.min() < 0:
            return None
        checked = by
        try:
            results.append(EagerTensor(array._a.take(indices, axis=0), array._t))
        except IndexError:
            return None
    return results


def results(made: Any) -> Any:
    """The specs of the results of a trace."""
    specs = made.packed([TensorSpec(t.spec.shape, t.dtype)
                         for t in made.graph.outputs[: made.results]])
    return nest.map_structure(lambda s: NoneTensorSpec() if s is None else s, specs)

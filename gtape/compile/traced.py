"""Traced: what one trace of a Python function is: a graph, the state it touches, its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.graph import Graph
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.symbols import SymbolicTensor
from gtape.core.tensor import Tensor
from gtape.core.tracer import CellUse, Tracer


class Traced:
    """A graph whose inputs are the arguments, then what it captured, then its cells' values; and
    whose outputs are the results, then the new values of the cells it writes.

    `structure` is the result with a number in place of every tensor, None left as it is.
    """

    __slots__ = ("arguments", "captured", "cells", "created", "graph", "results", "structure",
                 "written")

    def __init__(self, arguments: Sequence[SymbolicTensor], tracer: Tracer,
                 results: Sequence[Tensor], structure: Any) -> None:
        self.arguments = tuple(arguments)
        self.captured = [outer for outer, _ in tracer.captures.values()]
        self.cells: list[CellUse] = list(tracer.cells.values())
        self.written = [use for use in self.cells if use.written]
        self.created = tracer.created
        self.results = len(results)
        self.structure = structure
        inner = [symbol for _, symbol in tracer.captures.values()]
        inputs = (*arguments, *inner, *(use.start for use in self.cells))
        self.graph = Graph(inputs, tuple(tracer.nodes),  # type: ignore[arg-type]
                           (*results, *(use.present for use in self.written))).live()

    def packed(self, results: Sequence[Any]) -> Any:
        """The result of a call, from its tensors."""
        if type(self.structure) is int:
            return results[0]
        return nest.map_structure(
            lambda at: results[at] if type(at) is int else _rebuilt(at, results), self.structure)

    def apply(self, arguments: Sequence[Tensor]) -> Any:
        """The result, by applying the nodes one by one: recorded by tapes, inlined by traces."""
        values = [use.cell._read_() for use in self.cells]
        made = self.graph(*arguments, *self.captured, *values)
        for use, value in zip(self.written, made[self.results:]):
            use.cell._store_(value)
        return self.packed(made[: self.results])


class _Slices:
    """The place of an IndexedSlices in a structure."""

    __slots__ = ("parts", "shape")

    def __init__(self, parts: tuple[int, ...], shape: Any) -> None:
        self.parts = parts
        self.shape = shape


def _rebuilt(at: Any, results: Sequence[Any]) -> Any:
    if not isinstance(at, _Slices):
        return at
    return IndexedSlices(*(results[i] for i in at.parts), at.shape)


def traced(fn: Callable[..., Any], tracer: Tracer, arguments: Sequence[SymbolicTensor],
           name: str) -> Traced:
    """Run `fn()`, which uses `arguments`, as part of `tracer`.

    Raises:
        TypeError: the result holds something that is neither a tensor nor becomes one, nor None.
    """
    results: list[Tensor] = []

    def place(leaf: Any) -> Any:
        if leaf is None:
            return None
        if isinstance(leaf, IndexedSlices):
            at = (place(leaf.values), place(leaf.indices))
            return _Slices(at, leaf.dense_shape)
        try:
            results.append(tracer.local(convert(leaf)))
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"{name} returned {leaf!r:.80} of type {type(leaf).__name__}: a traced function "
                f"returns tensors, numbers, arrays, None, and nests of these ({error})") from None
        return len(results) - 1

    try:
        structure = tracer.run(lambda: nest.map_structure(place, fn()))
    finally:
        tracer.finished = True
    return Traced(arguments, tracer, results, structure)

"""ForwardBackward: a forward program that leaves what a backward program needs.

Both are functions of tensors alone: a Variable's value is one that was read before, and what the
forward program makes is never written to again.

For `reduce_sum(exp(tanh(x @ w)) * 2)` and the gradient of w:

    forward   x, w -> the sum, tanh(…), exp(…)      2 exp(…) is cheap, and not kept
    backward  x, tanh(…), exp(…), g -> xᵀ @ (((g * 2) * exp(…)) * (1 - tanh(…)²))

The operands of `backward` are inputs, outputs that it reads (`kept`), and cotangents; w is not
among them, for no derivative here reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import pure
from gtape.compile.gradient.joint import Joint, JointWalk, tensors_of
from gtape.compile.gradient.saved_activations import saved
from gtape.core.context import paused
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.locks import lock, trace_lock
from gtape.core.tensor import Tensor
from gtape.trace.graph import Graph, live_nodes
from gtape.trace.symbolic_tensor import SymbolicTensor


class ForwardBackward:
    """The programs for the inputs of `graph` at the positions `wanted`.

    Args:
        results: how many outputs a cotangent can arrive at; those after them are state.

    Raises:
        LookupError: as `Joint`.
    """

    def __init__(self, graph: Graph, wanted: Sequence[int], results: int) -> None:
        self.wanted = tuple(wanted)
        joint = self._joint = Joint(graph, wanted)
        self.count = len(joint.outputs)
        #: Of each output, the inputs that it has a gradient for, as bits among those wanted.
        self.reach = joint.reach()
        # What to save is settled by the walk from all outputs: walks from fewer read no more.
        whole = joint.walk([i for i in range(results) if self.reach[i]])
        needed = _read(whole)
        own = {id(v): i for i, v in enumerate(joint.outputs) if type(v) is SymbolicTensor}
        extra = saved(joint.nodes, needed, set(own))
        outputs = (*joint.outputs, *extra)
        self._shared = _shared(joint, needed)
        self.forward = _entry(pure(joint.inputs, joint.nodes, outputs, self._shared))
        there = {id(v) for v in joint.inputs}
        #: The outputs that backward programs read, those saved for them too.
        self.kept = [i for v, i in own.items() if v in needed and v not in there]
        self.kept += range(self.count, len(outputs))
        self._held = (*joint.inputs, *(outputs[i] for i in self.kept))
        self._lock = lock()
        self._backward: dict[tuple[int, ...], Backward] = {}

    def backward(self, given: tuple[int, ...]) -> Backward:
        """The program for cotangents of the outputs at these positions.

        It takes the inputs, the outputs `kept`, and the cotangents.
        """
        program = self._backward.get(given)
        if program is None:
            with trace_lock(self._lock):
                program = self._backward.get(given)
                if program is None:
                    program = Backward(self._joint, self._joint.walk(given), self._held,
                                       self._shared)
                    self._backward[given] = program
        return program


def _read(walk: JointWalk) -> set[int]:
    """The ids of what a walk reads of the values before it."""
    outputs = [t for part in walk.parts for t in tensors_of(part)]
    return live_nodes(walk.nodes, outputs)[1]


def _shared(joint: Joint, needed: set[int]) -> frozenset[int]:
    """The ids of the values before a walk that are read more than once, by it or by each other: a
    backward program that computes them again may read them once, and they are the same there."""
    once: set[int] = set()
    shared: set[int] = set()
    for numbers in (needed, *({id(v) for v in node.inputs} for node in joint.nodes)):
        shared |= numbers & once
        once |= numbers
    return frozenset(shared)


def _entry(traced: Any) -> Callable[..., Sequence[Tensor]]:
    with paused():
        return compile_closed(traced).entry


class Backward:
    """The program of a walk: what is held and the cotangents -> the gradients.

    Values before the walk that are not held are computed again.
    """

    def __init__(self, joint: Joint, walk: JointWalk, held: Sequence[Tensor],
                 shared: frozenset[int]) -> None:
        given = {id(v): v for v in (*held, *walk.seeds)}
        places = {id(v): i for i, v in enumerate((*held, *walk.seeds))}
        outputs: list[Tensor] = []
        for tensor in (t for part in walk.parts for t in tensors_of(part)):
            if id(tensor) not in places:
                places[id(tensor)] = len(held) + len(walk.seeds) + len(outputs)
                outputs.append(tensor)
        nodes, read = live_nodes((*joint.nodes, *walk.nodes), outputs, known=given)
        inputs = [v for key, v in given.items() if key in read]
        self._reads = [places[id(v)] for v in inputs]
        self._run = _entry(pure(inputs, nodes, outputs, shared)) if outputs else _nothing
        self._parts = [_placed(part, places) for part in walk.parts]

    def __call__(self, held: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Any]:
        """The gradient of each wanted input: a tensor, an IndexedSlices or None."""
        given = (*held, *seeds)
        with paused():
            every = (*given, *self._run(*[given[i] for i in self._reads]))
        return [part if part is None else every[part] if type(part) is int else
                IndexedSlices(every[part[0]], every[part[1]], part[2]) for part in self._parts]


def _nothing() -> tuple[()]:
    return ()


def _placed(part: Any, places: dict[int, int]) -> Any:
    """Where the tensors of a gradient are: a place, two and the whole shape, or None."""
    if part is None or isinstance(part, Tensor):
        return None if part is None else places[id(part)]
    return places[id(part.values)], places[id(part.indices)], part.dense_shape

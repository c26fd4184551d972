"""Draws: functions of elements that draw random numbers, as functions of elements and numbers.

A trace that draws from the streams of `tf.random` moves their positions on by as many numbers for
every element. The numbers of many elements are then one stretch of a stream: they are drawn at
once, and are those that the elements would have drawn one after the other. A choice between two
branches becomes a choice between their results, so that it can be made for many elements at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.elementwise.scalars import where
from gtape.ops.random.draws import Draw, _sampled
from gtape.ops.random.streams import StreamState, streams
from gtape.trace.graph import Graph
from gtape.trace.subgraph import SubgraphOp
from gtape.trace.tracer import trace

#: How many numbers a place of a stream gives, by distribution and bits of a number, where each
#: number depends on its own place alone.
_PER_PLACE = {("uniform", 32): 4, ("uniform", 64): 2, ("normal", 32): 4, ("normal", 64): 2,
              ("uniform_int", 32): 2, ("uniform_int", 64): 2}
#: Larger draws are made one after the other: a stretch of the stream has most places for nothing.
_SMALL = 64


class Undrawable(Exception):
    """The numbers of many elements cannot be drawn at once."""


class Draws:
    """The draws of a trace.

    Raises:
        Undrawable: it touches other state than random streams, or draws in a branch, or numbers
            that depend on more than their place.
    """

    def __init__(self, traced: Any) -> None:
        self._traced = traced
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
    captured, state = op.inputs.split(values[1:])
    one, other = (op.inputs.apply(body, (), captured, state, False) for body in op.inputs.bodies)
    return [where(values[0], a, b) for a, b in zip(one, other)]

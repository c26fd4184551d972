"""Depths: which steps of one shape may run together, and what is computed twice for that.

A value that is computed in the forward pass and read again in the backward pass has to lie in
memory in between. A large one that a cheap step makes of another is computed again instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.numpy.values import ArrayValue, NumpyStep, UfuncStep

#: Functions that cost less than reading an array from memory.
_CHEAP = frozenset((
    "add", "subtract", "multiply", "negative", "square", "greater", "greater_equal", "less",
    "less_equal", "equal", "not_equal", "maximum", "minimum", "absolute", "sign", "cast",
    "logical_and", "logical_or", "logical_not"))


class Depths:
    """`of[id(step)]` grows on every way but one from mate to mate and one from a number, so that
    what leaves a cluster never comes back to its depth. Mates are `UfuncStep`s of one shape.

    `steps` has the copies of steps that are computed twice.
    """

    def __init__(self, steps: Sequence[NumpyStep], outputs: Sequence[ArrayValue]) -> None:
        self.of: dict[int, int] = {}
        self._readers: dict[int, list[NumpyStep]] = {}
        self._outputs = set(map(id, outputs))
        for step in steps:
            self.of[id(step)] = max((self.of.get(id(v.step), 0) + self._deeper(v, step)
                                     for v in step.inputs), default=0)
            for value in set(step.inputs):
                self._readers.setdefault(id(value), []).append(step)
        found: list[NumpyStep] = []
        for step in reversed(steps):
            copies = self._placed(step) if isinstance(step, UfuncStep) else []
            found += [step, *copies]
        self.steps = found[::-1]

    @staticmethod
    def _deeper(value: ArrayValue, step: NumpyStep) -> int:
        mates = isinstance(value.step, UfuncStep) and isinstance(step, UfuncStep) and (
            value.shape == step.outputs[0].shape)
        return 0 if value.step is None or not value.shape or mates else 1

    def _placed(self, step: UfuncStep) -> list[NumpyStep]:
        """Put a step beside those that read it, and give its copies."""
        made = step.outputs[0]
        readers = self._readers.get(id(made), [])
        if id(made) in self._outputs or not made.shape or any(
                self._deeper(made, r) for r in readers):
            return []
        depths = sorted({self.of[id(r)] for r in readers})
        arrays = [v for v in dict.fromkeys(step.inputs) if v.shape]
        if len(depths) == 1 and len(arrays) == 1:
            self.of[id(step)] = depths[0]
            return []
        if not made.large or step.function.name not in _CHEAP or any(
                v.shape != made.shape for v in arrays):
            return []
        deeper = [d for d in depths if d > self.of[id(step)] and self._there(arrays, d)]
        return [self._copy(step, d) for d in deeper]

    def _there(self, arrays: Sequence[ArrayValue], depth: int) -> bool:
        """Whether computing of some arrays at a depth needs no more arrays there than before."""
        missing = [v for v in arrays if isinstance(v.step, UfuncStep) and not any(
            self.of[id(r)] == depth for r in self._readers[id(v)])]
        return len(missing) <= (len(arrays) == 1)

    def _copy(self, step: UfuncStep, depth: int) -> NumpyStep:
        """A copy of a step for those that read it at a depth."""
        made = step.outputs[0]
        copy = type(step)(step.function, step.inputs, made.shape, made.dtype)
        self.of[id(copy)] = depth
        for value in set(copy.inputs):
            self._readers[id(value)].append(copy)
        readers = self._readers[id(made)]
        moved = [r for r in readers if self.of[id(r)] == depth]
        self._readers[id(made)] = [r for r in readers if self.of[id(r)] != depth]
        self._readers[id(copy.outputs[0])] = moved
        for reader in moved:
            reader.inputs = tuple(copy.outputs[0] if v is made else v for v in reader.inputs)
        return copy


def place_of(steps: Sequence[Any]) -> dict[int, int]:
    """By id: the places of steps."""
    return {id(s): i for i, s in enumerate(steps)}

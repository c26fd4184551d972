"""State that lies in arrays which never move: which of it is read and written where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.numpy_depths import place_of
from gtape.compile.numpy_steps import Steps
from gtape.compile.numpy_units import Cluster, Group, Unit, ordered
from gtape.compile.numpy_values import Applied, Call, Mapped, Step, Value
from gtape.compile.traced import Traced
from gtape.kinds.array_cell import ArrayCell


class State:
    """The cells of a program that are arrays.

    `arrays`: by the id of a value, the array in which its cell holds it at the start.
    `targets`: by the id of a value, the array of the cell that takes it.
    `direct`: ids of values that are computed right into their targets.
    """

    def __init__(self, traced: Traced, made: Steps) -> None:
        self.arrays: dict[int, np.ndarray] = {}
        self.targets: dict[int, np.ndarray] = {}
        self.direct: set[int] = set()
        self._starts: dict[int, Value] = {}
        count = len(made.inputs) - len(traced.cells)
        self._readers = _readers(made.steps)
        self._outputs = [id(v) for v in made.outputs]
        starts = {id(use): v for use, v in zip(traced.cells, made.inputs[count:])}
        alone = not any(isinstance(s, Applied) for s in made.steps)
        for use, value in zip(traced.cells, made.inputs[count:]):
            if isinstance(use.cell, ArrayCell) and alone and self._stays(value):
                self.arrays[id(value)] = use.cell._array()
        for use, value in zip(traced.written, made.outputs[traced.results:]):
            start = starts[id(use)]
            if isinstance(use.cell, ArrayCell) and self._outputs.count(id(value)) == 1 and (
                    id(start) in self.arrays or not self._readers.get(id(start))):
                self.targets[id(value)] = use.cell._array()
                self._starts[id(value)] = start

    def _stays(self, value: Value) -> bool:
        """Whether nothing but arithmetic reads a value: nobody can hold its memory."""
        return id(value) not in self._outputs and all(
            isinstance(s, Mapped) for s in self._readers.get(id(value), ()))

    def place(self, units: list[Unit]) -> list[Unit]:
        """`units` in an order in which as much as possible is computed into its target."""
        steps = [s for u in units for s in u.steps]
        self._readers = _readers(steps)
        for unit in units:
            found = [v for v in unit.makes if self._can(unit, v)]
            if isinstance(unit, Group):
                found = self._of_all(unit, found)
            if found and isinstance(unit, (Cluster, Group)):
                self.direct.update(map(id, found))
                unit.late = True
        units = ordered(units, place_of(steps))
        late = next((i for i, u in enumerate(units) if u.late), len(units))
        if any(isinstance(s, (Call, Applied)) for u in units[late:] for s in u.steps):
            self.direct.clear()  # what fails must not leave half of the state written
        return units

    def _can(self, unit: Unit, value: Value) -> bool:
        target, step = self.targets.get(id(value)), value.step
        if target is None or not isinstance(step, Mapped) or not step.function.ufunc or (
                target.dtype != value.dtype or not value.shape or not target.flags.c_contiguous):
            return False
        if not all(isinstance(s, Mapped) for s in self._readers.get(id(value), ())):
            return False
        before = _needs(step)
        return all(id(s) in before for s in self._readers.get(id(self._starts[id(value)]), ()))

    def _of_all(self, group: Group, found: Sequence[Value]) -> list[Value]:
        """Those that are found in every member, with targets one after another."""
        ids = set(map(id, found))
        made: list[Value] = []
        for at in group.kept:
            values = [m.steps[at].outputs[0] for m in group.members]
            if all(id(v) in ids for v in values) and joined(
                    [self.targets[id(v)] for v in values]) is not None:
                made += values
        return made


def _readers(steps: Sequence[Step]) -> dict[int, list[Step]]:
    found: dict[int, list[Step]] = {}
    for step in steps:
        for value in step.inputs:
            found.setdefault(id(value), []).append(step)
    return found


def _needs(step: Step) -> set[int]:
    """The step and all that it needs."""
    found: set[int] = set()
    stack = [step]
    while stack:
        current = stack.pop()
        if id(current) not in found:
            found.add(id(current))
            stack.extend(v.step for v in current.inputs if v.step is not None)
    return found


def joined(arrays: Sequence[np.ndarray]) -> Any:
    """The flat array whose parts the arrays are, one after another; None where they are not."""
    root = arrays[0]
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = at = arrays[0].ctypes.data
    for array in arrays:
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        if base is not root or array.ctypes.data != at or not array.flags.c_contiguous:
            return None
        at += array.nbytes
    if not root.flags.c_contiguous or root.dtype != arrays[0].dtype:
        return None
    first = (start - root.ctypes.data) // root.itemsize
    return root.reshape(-1)[first: first + (at - start) // root.itemsize]

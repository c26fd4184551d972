"""Variables of one dtype and device, laid out one after another, so that one call updates all.

A tensor somebody read must never change, so every update writes a fresh flat array, of which the
variables hold slices. For large arrays the one before the present one is written again, when
nothing holds a slice of it any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.state import active
from gtape.core.tensor import EagerTensor
from gtape.keras.optimizers.slot_variable import SlotCell

#: Larger variables are not laid out with others: copying their gradients would cost more.
SHARED_HOST, SHARED_DEVICE = 1 << 16, 1 << 20
#: Elements that are updated at a time, so that temporaries stay in a core's cache.
BLOCK = 1 << 14
#: Arrays from this size on are written again.
_REUSED = 1 << 16
#: In bytes: where variables begin for kernels.
_ALIGNMENT = 64

Formula = Callable[..., Any]


class _Spare:
    """An array to write into, if nobody else refers to it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def references(self) -> int:
        return sys.getrefcount(self.array)


_ALONE = _Spare(np.empty(1)).references()


class Group:
    """Variables whose elements lie one after another in flat arrays.

    `slots` are the state arrays of the optimizer, flat too; `states` the variables. Where kernels
    compute, every variable begins at a multiple of 64 bytes, which they read faster.
    """

    __slots__ = ("_cells", "_flat", "_gaps", "_spare", "_views", "bounds", "decayed", "shapes",
                 "size", "slots", "states", "type")

    def __init__(self, states: Sequence[Any], initial: Sequence[float], decayed: bool) -> None:
        self.states = list(states)
        self.decayed = decayed
        self.type = states[0]._value._t
        self.shapes = [tuple(s._value.spec.shape) for s in states]
        self.bounds, self._gaps = _bounds([int(np.prod(shape)) for shape in self.shapes], self.type)
        self.size = self.bounds[-1][1]
        self.slots = [self.type.xp.full(self.size, value, self.type.dtype.np_dtype)
                      for value in initial]
        self._flat: Any = None
        self._views: list[Any] = []
        self._spare: _Spare | None = None
        self._cells: dict[tuple[int, int], SlotCell] = {}

    def cell(self, slot: int, at: int) -> SlotCell:
        """The state in a slot of the variable at a position, as traces know it."""
        found = self._cells.get((slot, at))
        if found is None:
            found = self._cells[slot, at] = SlotCell(self, slot, at)
        return found

    def laid_out(self) -> Any:
        """The flat array of which the variables hold their slices, or None."""
        views = self._views
        if not views:
            return None
        for state, view in zip(self.states, views):
            if state._value._a is not view:
                return None
        return self._flat

    def weights(self) -> Any:
        """The present values, flat. Not to be written to."""
        found = self.laid_out()
        return self.joined([s._value._a for s in self.states]) if found is None else found

    def joined(self, arrays: Sequence[Any]) -> Any:
        """Arrays of the variables' shapes as one flat array. Not to be written to."""
        if len(arrays) == 1:
            return self.type.xp.asarray(arrays[0]).reshape(-1)
        parts = [a.reshape(-1) for a in arrays]
        if self._gaps:
            parts = [p for pair in zip(self._gaps, parts) for p in pair]
        return self.type.xp.concatenate(parts)

    def length(self, at: int) -> int:
        """The number of elements of a variable."""
        start, end = self.bounds[at]
        return end - start

    def update(self, formula: Formula, gradients: Sequence[Any], shrink: Any = None) -> None:
        """New values w - formula(w, g, slots) for all variables, where w is first multiplied by
        1 - `shrink` when that is given."""
        w, g = self.weights(), self.joined(gradients)
        if self.size <= BLOCK or not self.type.device.is_host:
            self.write(_updated(formula, self.type.xp, w, g, self.slots, shrink))
            return
        new = self._target()
        for start in range(0, self.size, BLOCK):
            part = slice(start, start + BLOCK)
            slots = [slot[part] for slot in self.slots]
            new[part] = _updated(formula, np, w[part], g[part], slots, shrink)
        self.write(new)

    def update_some(self, formula: Formula, pairs: Sequence[tuple[int, Any]],
                    shrink: Any = None) -> None:
        """`update` of the variables at some positions only."""
        for at, gradient in pairs:
            start, end = self.bounds[at]
            state, xp = self.states[at], self.type.xp
            slots = [slot[start:end] for slot in self.slots]
            new = _updated(formula, xp, xp.asarray(state._value._a).reshape(-1),
                           gradient.reshape(-1), slots, shrink)
            assign(state, new.reshape(self.shapes[at]), self.type)

    def _target(self) -> Any:
        spare = self._spare
        if spare is not None and spare.references() <= _ALONE:
            self._spare = None
            return spare.array
        return np.empty(self.size, self.type.dtype.np_dtype)

    def give(self, flat: Any, positions: Sequence[int]) -> None:
        """`write`, of the variables at some positions only."""
        if len(positions) == len(self.states):
            self.write(flat)
            return
        for at in positions:
            start, end = self.bounds[at]
            assign(self.states[at], flat[start:end].reshape(self.shapes[at]), self.type)

    def write(self, flat: Any) -> None:
        """Give every variable its slice of `flat`, which nobody else may write to."""
        if self.size >= _REUSED and self.type.device.is_host and self._views:
            self._spare = _Spare(self._flat)
        array_type = self.type
        views = self._views = [flat[start:end].reshape(shape)
                               for (start, end), shape in zip(self.bounds, self.shapes)]
        self._flat = flat
        if active():
            for state, view in zip(self.states, views):
                assign(state, view, array_type)
        else:
            for state, view in zip(self.states, views):
                state._value = EagerTensor(view, array_type)


def _bounds(sizes: Sequence[int], array_type: Any) -> tuple[list[tuple[int, int]], list[Any]]:
    """Where each variable begins and ends, and the zeros before each, if there are any."""
    step = 1
    if array_type.device.executor is not None:
        step = max(1, _ALIGNMENT // array_type.dtype.np_dtype.itemsize)
    bounds, gaps, end = [], [], 0
    for size in sizes:
        start = -(-end // step) * step
        gaps.append(start - end)
        end = start + size
        bounds.append((start, end))
    zeros = [array_type.xp.zeros(gap, array_type.dtype.np_dtype) for gap in gaps] \
        if any(gaps) else []
    return bounds, zeros


def assign(state: Any, array: Any, array_type: Any) -> None:
    """Make `array` the value of a variable, as `Variable.assign` does, without checks."""
    made = EagerTensor(array, array_type)
    if active():
        state._written(made, False, None, state)
    else:
        state._value = made


def _updated(formula: Formula, xp: Any, w: Any, g: Any, slots: Sequence[Any], shrink: Any) -> Any:
    if shrink is not None:
        w = w - w * shrink
    return w - formula(xp, w, g, *slots)

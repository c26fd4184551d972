"""Views as NumPy's: reshaped, sliced, transposed, repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.compile.ir.nodes import Shape, View, dense
from gtape.compile.numpy.names import Names


class Run(NamedTuple):
    """Some places of an axis."""

    axis: int
    length: int
    step: int

    def key(self, start: int, whole: int) -> str:
        """The slice of an axis whose length is `whole`."""
        if self.length == whole and self.step == 1:
            return ":"
        stop = start + (self.length - 1) * self.step + (1 if self.step > 0 else -1)
        step = "" if self.step == 1 else f":{self.step}"
        return f"{start}:{'' if stop < 0 else stop}{step}"


def view_text(names: Names, view: View, shape: Shape, text: str) -> str:
    """The elements of a view of the array `text`, which may lie in memory in any way."""
    (x,), (strides, offset) = view.inputs, view.layout
    size = math.prod(shape)
    if size == 0:
        return f"{names.bound(np.empty, 'empty')}({shape!r}, {text}.dtype)"
    if size == x.size and offset == 0 and all(
            s == d for s, d, n in zip(strides, dense(shape), shape) if n > 1):
        return text if shape == x.shape else f"{text}.reshape({shape!r})"
    starts = [offset // place % n for place, n in zip(dense(x.shape), x.shape)]
    axes = _axes(x.shape, shape, strides, starts)
    if axes is None:
        return f"{names.bound(_strided, 'strided')}({text}, {shape!r}, {strides!r}, {offset})"
    return _sliced(names, x.shape, shape, axes, starts, text)


def _axes(old: Shape, shape: Shape, strides: Sequence[int], starts: Sequence[int],
          ) -> list[Run | None] | None:
    """By axis: the run that it is; None for axes of length 1 and those that repeat. None for all
    where an axis is split or joined."""
    places = dense(old)
    runs: list[Run | None] = []
    for n, stride in zip(shape, strides):
        if n == 1 or stride == 0:
            runs.append(None)
            continue
        at = next((i for i, place in enumerate(places) if stride % place == 0
                   and 0 <= starts[i] + (n - 1) * (stride // place) < old[i]), None)
        if at is None or any(run is not None and run.axis == at for run in runs):
            return None
        runs.append(Run(at, n, stride // places[at]))
    return runs


def _sliced(names: Names, old: Shape, shape: Shape, axes: Sequence[Run | None],
            starts: Sequence[int], text: str) -> str:
    """Slices of the axes that are left, in their new order, with new ones between."""
    order = [run.axis for run in axes if run is not None]
    runs = {run.axis: run for run in axes if run is not None}
    keys = [str(start) if i not in runs else runs[i].key(start, n)
            for i, (start, n) in enumerate(zip(starts, old))]
    view = text if all(k == ":" for k in keys) else f"{text}[{', '.join(keys)}]"
    left = sorted(order)
    if order != left and order == left[::-1]:
        view += ".T"
    elif order != left:
        view += f".transpose({tuple(left.index(a) for a in order)!r})"
    if None in axes:
        view += f"[{', '.join('None' if a is None else ':' for a in axes)}]"
    if any(a is None and n > 1 for a, n in zip(axes, shape)):
        view = f"{names.bound(np.broadcast_to, 'broadcast_to')}({view}, {shape!r})"
    return view


def _strided(array: object, shape: Shape, strides: tuple[int, ...], offset: int) -> Any:
    """Strides and offset count elements of an array that lies together in memory."""
    flat = np.ascontiguousarray(array).reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])

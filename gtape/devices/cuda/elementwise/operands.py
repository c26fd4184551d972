"""How the operands of a map are read: their common shape with as few axes as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class OperandLayout(NamedTuple):
    """The result's shape, the axes that remain after merging, and each operand's mode.

    `modes` has "number" for Python numbers. `strides` has, for each strided operand, its steps in
    elements along `axes`.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    modes: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> int:
        """The length of the last axis: the period of rows."""
        return self.axes[-1] if self.axes else 1


def layout(args: Sequence[object]) -> OperandLayout:
    """The layout of arrays and Python numbers that are combined element by element.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    arrays = [a for a in args if hasattr(a, "shape")]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    steps = [_steps(a, shape) for a in arrays]
    axes, steps = _merged(shape, steps)
    modes_and_steps = iter([(_mode(s, axes), s) for s in steps])
    modes, strides = [], []
    for a in args:
        mode, s = next(modes_and_steps) if hasattr(a, "shape") else ("number", ())
        modes.append(mode)
        if mode == "strided":
            strides.append(tuple(s))
    return OperandLayout(shape, tuple(axes), tuple(modes), tuple(strides))


def _steps(array: Any, shape: tuple[int, ...]) -> list[int]:
    """Elements to step along each axis of `shape`; 0 where the array is broadcast."""
    lead = len(shape) - array.ndim
    size = array.dtype.itemsize
    return [0] * lead + [0 if n == 1 else s // size for n, s in zip(array.shape, array.strides)]


def _merged(shape: Sequence[int], steps: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Axes of length 1 dropped, and neighbours that every operand walks as one joined."""
    kept = [i for i, n in enumerate(shape) if n != 1]
    axes: list[int] = []
    merged: list[list[int]] = [[] for _ in steps]
    for i in kept:
        # Each axis that remains costs a division for each element of a strided operand.
        if axes and all(m[-1] == s[i] * shape[i] for m, s in zip(merged, steps)):
            axes[-1] *= shape[i]
            for m, s in zip(merged, steps):
                m[-1] = s[i]
        else:
            axes.append(shape[i])
            for m, s in zip(merged, steps):
                m.append(s[i])
    return axes, merged


def _mode(steps: Sequence[int], axes: Sequence[int]) -> str:
    contiguous = [1] * len(axes)
    for d in range(len(axes) - 2, -1, -1):
        contiguous[d] = contiguous[d + 1] * axes[d + 1]
    if list(steps) == contiguous:
        return "each"
    if not any(steps):
        return "one"
    if len(axes) == 2 and tuple(steps) in ((0, 1), (1, 0)):
        return "row" if steps[1] else "column"
    return "strided"

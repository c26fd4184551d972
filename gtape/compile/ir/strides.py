"""Strides: what a view of a view is, and what a view is under another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from gtape.compile.ir.nodes import Shape


def same_axes(old: Shape, new: Shape) -> tuple[int | None, ...] | None:
    """Which old axis each new one is, where only axes of length 1 come and go; else None."""
    places = [i for i, n in enumerate(old) if n != 1]
    if [old[i] for i in places] != [n for n in new if n != 1]:
        return None
    rest = iter(places)
    return tuple(None if n == 1 else next(rest) for n in new)


def moved(stride: int, shape: Shape, places: Sequence[int],
           strides: Sequence[int]) -> int | None:
    """What a step of `stride` places in a dense array of `shape` is in a view with `strides`."""
    if stride == 0:
        return 0
    for n, place, actual in zip(shape, places, strides):
        if n > 1 and place <= abs(stride) and stride % place == 0 and abs(stride) < place * n:
            return stride // place * actual
    return None


def restrided(shape: Shape, strides: Sequence[int], new: Shape) -> tuple[int, ...] | None:
    """The strides of a view under another shape; None where it would have to be copied."""
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    made: list[int] = []
    position = 0
    left: list[tuple[int, int]] = []
    for n in new:
        if n == 1:
            made.append(0)
            continue
        if not left:
            if position >= len(old):
                return None
            left, position = [old[position]], position + 1
        while math.prod(m for m, _ in left) < n or math.prod(m for m, _ in left) % n:
            if position >= len(old):
                return None
            left.append(old[position])
            position += 1
        if not _joined(left):
            return None
        total, inner = math.prod(m for m, _ in left), left[-1][1]
        rest = total // n
        made.append(inner * rest)
        left = [(rest, inner)] if rest > 1 else []
    return tuple(made)


def _joined(axes: Sequence[tuple[int, int]]) -> bool:
    """Whether axes lie in memory like one."""
    return all(outer == inner * n for (_, outer), (n, inner) in pairwise(axes))

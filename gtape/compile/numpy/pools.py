"""Pools: large arrays that only a program itself sees are used again in its next call.

Fresh memory costs as much as computing what is written to it: the system clears every page of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.numpy.blocks import in_blocks
from gtape.compile.numpy.clusters import JoinedClusters, Unit
from gtape.compile.numpy.values import ArrayProduct, ArrayValue, Sum, UfuncStep

#: Arrays that are not in use, all of one shape and dtype. Threads take them out and put them back.
Pool = list[Any]


def take(pool: Pool, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """An array to write to."""
    try:
        return pool.pop()
    except IndexError:
        return np.empty(shape, dtype)


def pools_of(units: Sequence[Unit], seen: set[int]) -> dict[int, Pool]:
    """By id, the pools of the values that steps write where they are told, and of which no reader
    keeps a view. `seen`: ids of values that others see."""
    views = {id(v) for u in units for s in u.steps for v in s.inputs
             if not isinstance(s, (UfuncStep, Sum, ArrayProduct))}
    read = {id(v) for u in units for v in u.reads}
    pools: dict[Any, Pool] = {}
    found: dict[int, Pool] = {}
    for unit in units:
        for value in unit.makes:
            if _told(unit, value) and id(value) in read and id(value) not in views | seen:
                found[id(value)] = pools.setdefault((value.shape, value.dtype), [])
    return found


def _told(unit: Unit, value: ArrayValue) -> bool:
    step = value.step
    if not value.large or isinstance(unit, JoinedClusters):
        return False
    return isinstance(step, ArrayProduct) or (isinstance(step, UfuncStep) and (
        step.function.ufunc or in_blocks(unit.steps, unit.reads)))

"""Where the values of NumPy programs lie: large ones that only a program itself sees in an arena.

Fresh memory costs as much as computing what is written to it: the system clears every page of it.
NumPy keeps the memory of small arrays itself. States get new arrays, since others may hold the old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.ir.nodes import Hosted, IrModule, Shape, Value, v_root
from gtape.compile.numpy import blocks
from gtape.compile.schedule.fuse import Fuser, FusionGroup
from gtape.compile.schedule.joining import joined
from gtape.compile.schedule.plan import MemoryPlan
from gtape.compile.schedule.recompute import recompute


class NumpyPlan(MemoryPlan):
    """`taken`: the values that lie in the arena, by number."""

    def __init__(self, module: IrModule) -> None:
        #: What array functions read: they may keep it, or give a view of it.
        self._handed = {v_root(v).number for n in module.nodes if isinstance(n, Hosted)
                        for v in n.inputs}
        self._handed |= {v_root(v).number for v in module.needed()}
        super().__init__(module)
        self.taken = {o.number: o for g in self.groups for n in g.nodes for o in n.outputs
                      if o.number in self.places and self.places[o.number].role == "arena"}

    def _fused(self, fused: bool) -> Fuser:
        fuser = super()._fused(fused)
        recompute(fuser, _large)
        return fuser

    def _ordered(self) -> list[FusionGroup]:
        self.groups = super()._ordered()
        nodes = [*self.module.nodes, *(n for group in self.groups for n in group.nodes)]
        taken = max((o.number for n in nodes for o in n.outputs), default=0)
        return joined(self.groups, self._stored(), taken + 1)

    def _writes(self) -> None:
        pass

    def _lies(self, value: Value) -> bool:
        return _large(value) and value.dtype in ("float32", "float64") and (
            value.number not in self._handed and not isinstance(value.node, Hosted))


def _large(value: Value) -> bool:
    return bool(value.shape) and value.size >= blocks.LARGE


class Arenas(list[Any]):
    """Those that are not in use. Threads take them out and put them back.

    Args:
        arrays: shapes, dtypes and offsets of the arrays in an arena of `size` bytes.
    """

    def __init__(self, arrays: Sequence[tuple[Shape, np.dtype, int]], size: int) -> None:
        super().__init__()
        self._arrays, self._size = arrays, size

    def take(self) -> tuple[np.ndarray, ...]:
        """The arrays of one that no other call uses."""
        try:
            return self.pop()
        except IndexError:
            memory = np.empty(self._size, np.uint8)
            return tuple([np.ndarray(shape, dtype, memory, at)
                          for shape, dtype, at in self._arrays])

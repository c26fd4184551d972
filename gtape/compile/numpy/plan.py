"""What NumPy programs compute themselves, and where their values lie.

Every op that the target does not know is applied by its own array function. Large values that only
a program itself sees lie in an arena: fresh memory costs as much as computing what is written to
it, for the system clears every page of it. NumPy keeps the memory of small arrays itself. States
get new arrays, since others may hold the old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.ir.builder import Builder, Rule
from gtape.compile.ir.lower import Target
from gtape.compile.ir.nodes import Hosted, IrModule, Shape, Value, v_root
from gtape.compile.numpy import blocks
from gtape.compile.schedule.fuse import Fuser, FusionGroup
from gtape.compile.schedule.plan import MemoryPlan, numpy_dtype
from gtape.compile.schedule.regrouping import joined, recompute
from gtape.core.op import Op
from gtape.core.spec import Spec
from gtape.ops.indexing import getitem
from gtape.ops.linalg import products
from gtape.ops.reductions import reductions
from gtape.ops.shape import casting, identity, layout, packing
from gtape.trace.graph import Node

#: Kinds of dtypes whose arithmetic NumPy knows itself.
_KINDS = "biufc"
#: Ops that compute nothing.
_VIEWS = frozenset((
    identity.identity_, identity.stop_gradient_, identity.assigned_, identity.optimization_barrier_,
    layout.reshape_, layout.transpose_, layout.broadcast_to_))
_PARTS = frozenset((getitem.getitem_, packing.split_, packing.unstack_))
#: Ops that join the formulas around them, and products, which read transposed arrays as they are.
_FLOATS = frozenset((layout.sum_to_, reductions.reduce_sum_, reductions.reduce_mean_,
                     products.matmul_))


class NumpyTarget(Target):
    """Python text that calls NumPy."""

    fuses_vectors = False
    shares_parts = True

    def spells(self, node: Node, inputs: Sequence[Value], spec: Spec) -> bool:
        names = [*(v.dtype for v in inputs), spec.dtype.name]
        return not node.stays and all(numpy_dtype(n).kind in _KINDS for n in names)

    def rule(self, op: Op, inputs: Sequence[Value]) -> Rule | None:
        if op is casting.cast_:
            return _cast
        if op in _PARTS:  # NumPy hands out one string of an array as bare bytes
            return op.lower if inputs[0].dtype != "string" else None
        return op.lower if op in _VIEWS or (op in _FLOATS and _is_float(inputs[0])) else None

    def opens(self, op: Op, inputs: Sequence[Value]) -> bool:
        return op.literal and (op not in _FLOATS or _is_float(inputs[0]))


NUMPY = NumpyTarget()


def _is_float(value: Value) -> bool:
    return value.dtype in ("float32", "float64")


def _cast(builder: Builder, inputs: list[Value], attrs: dict[str, object], specs: Sequence[Spec],
          ) -> Value | None:
    """Casts are what C++ programs imitate."""
    (value,), dtype = inputs, numpy_dtype(specs[0].dtype.name)
    if numpy_dtype(value.dtype).kind not in "biuf" or dtype.kind not in _KINDS:
        return None
    return builder.cast(value, specs[0].dtype.name)


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
        pass  # states get new arrays: others may hold the old

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
        except IndexError:  # by trial, since another thread may take the last after a test
            memory = np.empty(self._size, np.uint8)
            return tuple([np.ndarray(shape, dtype, memory, at)
                          for shape, dtype, at in self._arrays])

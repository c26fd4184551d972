"""What NumPy programs compute themselves; every other op is applied by its own array function."""

from __future__ import annotations

from collections.abc import Sequence

from gtape.compile.ir.builder import Builder, Rule
from gtape.compile.ir.nodes import Value
from gtape.compile.ir.target import Target
from gtape.compile.schedule.plan import numpy_dtype
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

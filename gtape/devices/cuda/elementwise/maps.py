"""DeviceMaps: formulas on one device, element by element or summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap
from gtape.devices.cuda.elementwise.joined_map import JoinedMap
from gtape.devices.cuda.elementwise.map_text import MapFormula
from gtape.devices.cuda.elementwise.summed_map import SummedMap
from gtape.devices.cuda.runtime.executor import Executor
from gtape.opdef.cuda_text import servable
from gtape.opdef.scalar_graph import Expr, ScalarGraph, operators


class DeviceMaps:
    """What makes the maps of a device."""

    def __init__(self, gpu: Executor) -> None:
        self.gpu = gpu
        self._sums: dict[Any, Callable[..., Any] | None] = {}

    def make(self, name: str, outputs: Sequence[Expr], params: Sequence[str],
             dtypes: Sequence[np.dtype], results: Sequence[np.dtype]) -> ElementwiseMap | None:
        """The map of a formula whose inputs have these dtypes; None where a scalar op in it has no
        CUDA text for them."""
        names = tuple(d.name for d in dtypes)
        if not names or not servable(outputs, dict(zip(params, names))) or not all(
                servable((), {"": r.name}) for r in results):
            return None
        formula = MapFormula(name, tuple(outputs), tuple(params), tuple(r.name for r in results))
        return ElementwiseMap(self.gpu, formula, names, tuple(results))

    def joined(self, one: ElementwiseMap, shapes: Sequence[tuple[int, ...]],
               each: Sequence[bool]) -> JoinedMap:
        """A map, for several members with results of these shapes in one launch. `each` says which
        inputs have the shape of the results; others are one number."""
        return JoinedMap(self.gpu, one, shapes, each)

    def added(self, a: Any, b: Any) -> Any:
        """a + b; one launch for arrays of one dtype."""
        # IndexedSlices beside an array add themselves.
        if type(b) is not type(a):
            return a + b
        dtype = a.dtype
        if dtype not in self._sums:
            scope = ScalarGraph()
            total = scope.node(operators["add"], (scope.input("a"), scope.input("b")))
            kernel = self.make("sum", [total], ["a", "b"], [dtype, dtype], [dtype])
            self._sums[dtype] = None if kernel is None else kernel.short(0)
        add = self._sums[dtype]
        return a + b if add is None or b.dtype != dtype else add(a, b)[0]

    def summed(self, whole: ElementwiseMap) -> SummedMap:
        """The one output of a map, of floats, summed to a smaller shape."""
        return SummedMap(self.gpu, whole)

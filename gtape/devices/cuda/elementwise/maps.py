"""DeviceMaps: formulas on one device, element by element or summed; and casts, which are maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gtape.core.dtypes import DType
from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap, combine
from gtape.devices.cuda.elementwise.joined import JoinedMap
from gtape.devices.cuda.elementwise.map_text import MapFormula, MapOperand
from gtape.devices.cuda.elementwise.summed import SummedMap
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name
from gtape.opdef.cuda_text import C_TYPES, servable
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
        # Two cotangents that meet are added in every backward: the map is kept by dtype, without
        # the look-ups of an op.
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


def cast(gpu: Executor, x: Any, dtype: DType) -> Any:
    """x as `dtype`; None where one of the two is no dtype of kernels (complex). Floats become
    integers by cutting off; out of range, and for nan, the value is not defined. Any number but 0
    becomes True."""
    if dtype_name(x.dtype) not in C_TYPES or dtype.name not in C_TYPES:
        return None
    return _cast_map(gpu, dtype_name(x.dtype), dtype.name)(x)[0]


@lru_cache(1024)
def _cast_map(gpu: Executor, source: str, dtype: str) -> ElementwiseMap:
    return ElementwiseMap(gpu, _cast_formula(dtype), (source,), (numpy_dtype(dtype),))


def _cast_formula(dtype: str) -> MapFormula:
    return MapFormula(f"cast to {dtype}", (ScalarGraph().input("x"),), ("x",), (dtype,))


def cast_kernels() -> Iterator[Kernel]:
    """Every cast of a contiguous array, those from one dtype in one program."""
    for source in C_TYPES:
        yield from combine([(_cast_formula(dtype), [MapOperand(source, "each")])
                            for dtype in C_TYPES if dtype != source])

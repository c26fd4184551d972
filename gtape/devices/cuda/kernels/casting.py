"""Casts: maps whose formula is their input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from gtape.core.dtypes import DType
from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap
from gtape.devices.cuda.elementwise.map_kernels import combine
from gtape.devices.cuda.elementwise.map_text import MapFormula, MapOperand
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, dtype_name
from gtape.opdef.cuda_text import C_TYPES
from gtape.opdef.scalar_graph import ScalarGraph


def cast(gpu: Executor, x: Any, dtype: DType) -> Any:
    """x as `dtype`; None where one of the two is no dtype of kernels (complex).

    Floats become integers by cutting off; out of range, and for nan, the value is not defined.
    Any number but 0 becomes True.
    """
    if dtype_name(x.dtype) not in C_TYPES or dtype.name not in C_TYPES:
        return None
    return _map(gpu, dtype_name(x.dtype), dtype.name)(x)[0]


@lru_cache(1024)
def _map(gpu: Executor, source: str, dtype: str) -> ElementwiseMap:
    return ElementwiseMap(gpu, _formula(dtype), (source,), (numpy_dtype(dtype),))


def _formula(dtype: str) -> MapFormula:
    return MapFormula(f"cast to {dtype}", (ScalarGraph().input("x"),), ("x",), (dtype,))


def instances() -> Iterator[Kernel]:
    """Every cast of a contiguous array, those from one dtype in one program."""
    for source in C_TYPES:
        yield from combine([(_formula(dtype), [MapOperand(source, "each")])
                            for dtype in C_TYPES if dtype != source])

"""Checks of joined maps: one formula of the tensors of many members, in one launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.elementwise.joined_map import joined_kernel
from gtape.devices.cuda.elementwise.map_text import MapFormula, MapOperand
from gtape.devices.cuda.elementwise.maps import DeviceMaps
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.checks.bench import Bench, Check, drawn
from gtape.opdef.scalar_graph import ScalarGraph
from gtape.ops.elementwise import scalars

#: Of one chunk and of many, of a few elements and of none, and none a multiple of a wide load.
_SHAPES = ((1,), (3,), (31,), (0,), (7, 11, 13), (4099,), (), (2, 70001))
_STEPS = 3


def _update(square_root: Any, w: Any, g: Any, m: Any, v: Any, rate: Any) -> list[Any]:
    """The update of Adam (arXiv:1412.6980): the new weight, momentum and velocity."""
    # Factors that every dtype has exactly, so that both sides multiply by the same.
    m = m + (g - m) * 0.125
    v = v + (g * g - v) * 0.0625
    return [w - rate * m / (square_root(v) + 0.0009765625), m, v]


def _formula(dtype: str) -> MapFormula:
    scope = ScalarGraph()
    params = ("w", "g", "m", "v", "rate")
    outputs = _update(lambda x: scope.node(scalars.sqrt.op, (x,)), *map(scope.input, params))
    return MapFormula("update", tuple(outputs), params, (dtype,) * 3)


def _sum(dtype: str) -> MapFormula:
    scope = ScalarGraph()
    total = scope.node(scalars.add.op, (scope.input("a"), scope.input("b")))
    return MapFormula("sum", (total,), ("a", "b"), (dtype,))


def _operands(dtype: str, numbers: int) -> tuple[MapOperand, ...]:
    return (*[MapOperand(dtype, "each")] * 4, MapOperand(dtype, "one"))[: 4 + numbers]


def kernels() -> Iterator[Kernel]:
    """An update of several results, and a sum, in every dtype."""
    for dtype in FLOATS:
        yield joined_kernel(_formula(dtype), _operands(dtype, 1))
        yield joined_kernel(_sum(dtype), _operands(dtype, 0)[:2])


def checks() -> Iterator[Check]:
    """Members of many sizes, every second of them off the 16-byte boundary."""
    for dtype in FLOATS:
        yield Check(f"updates {dtype}", partial(_updates, dtype=dtype))
        yield Check(f"sums {dtype}", partial(_sums, dtype=dtype))
        yield Check(f"no elements {dtype}", partial(_nothing, dtype=dtype))


def _joined(bench: Bench, formula: MapFormula, shapes: Sequence[tuple[int, ...]],
            each: Sequence[bool]) -> Any:
    maps, dtype = DeviceMaps(bench.gpu), numpy_dtype(formula.results[0])
    one = maps.make(formula.name, formula.outputs, formula.params,
                    [dtype] * len(formula.params), [dtype] * len(formula.results))
    assert one is not None
    return maps.joined(one, shapes, each)


def _updates(bench: Bench, dtype: str) -> None:
    update = _joined(bench, _formula(dtype), _SHAPES, [True] * 4 + [False])
    rate = np.asarray(0.125)
    state = []
    for i, shape in enumerate(_SHAPES):
        for k in range(3):
            values = drawn(shape, 10 * i + k, dtype=dtype)
            state.append(bench.array(np.abs(values) if k == 2 else values, dtype, i % 2 == 1))
    for step in range(_STEPS):
        arrays: list[Any] = []
        wanted: list[np.ndarray] = []
        for i, shape in enumerate(_SHAPES):
            w, m, v = state[3 * i: 3 * i + 3]
            g = drawn(shape, 1000 + 10 * step + i, dtype=dtype)
            arrays += [w, bench.array(g, dtype, i % 2 == 1), m, v, bench.array(rate, dtype)]
            wanted += _update(np.sqrt, bench.host(w), g, bench.host(m), bench.host(v), rate)
        state = update(arrays)
        for got, value in zip(state, wanted, strict=True):
            bench.same("state", got, value)


def _sums(bench: Bench, dtype: str) -> None:
    """Members that share inputs, and inputs that lie in no order."""
    a, b = drawn((6, 10), 1, dtype=dtype), drawn((10, 6), 2, dtype=dtype)
    first, second = bench.array(a, dtype), bench.array(b, dtype)
    sums = _joined(bench, _sum(dtype), [(6, 10), (6, 10), (3, 10)], [True, True])([
        first, second.T, first, first, first[::2], second.T[1::2]])
    for got, wanted in zip(sums, (a + b.T, a + a, a[::2] + b.T[1::2]), strict=True):
        bench.same("sum", got, wanted)


def _nothing(bench: Bench, dtype: str) -> None:
    empty = bench.array(np.zeros((0, 3)), dtype)
    (got,) = _joined(bench, _sum(dtype), [(0, 3)], [True, True])([empty, empty])
    bench.same("sum", got, np.zeros((0, 3)))

"""Checks of how derived kernels read their operands: broadcast, strided, summed to a shape."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.device import CPU
from gtape.devices.cuda.elementwise.map_kernels import kernel_of
from gtape.devices.cuda.elementwise.map_text import BLOCK, MapFormula, MapOperand
from gtape.devices.cuda.elementwise.maps import DeviceMaps
from gtape.devices.cuda.elementwise.summed_text import summed_entry, summed_text
from gtape.devices.cuda.runtime.executor import numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.checks.bench import Bench, Check, drawn
from gtape.opdef.cuda_text import compute_dtype
from gtape.opdef.elementwise_vjp import forward_step
from gtape.ops.elementwise.scalars import multiply

_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")
#: Shapes of two operands: rows, columns, one element, and what only coordinates can read.
_PAIRS = (((5, 7), (7,)), ((5, 8), (8,)), ((9, 64), (64,)), ((5, 8), (5, 1)), ((5, 7), (5, 1)),
          ((5, 8), ()), ((1, 1), (33,)), ((4, 1), (1, 3)), ((2, 3, 4), (2, 1, 4)),
          ((3, 1, 5), (4, 1)), ((), ()), ((0, 4), (4,)), ((2, 1, 3, 1, 4), (3, 2, 4)))
#: Shapes of two operands and the shape that their product is summed to.
_SUMS = (((37, 24), (37, 24), (24,)), ((37, 24), (37, 24), (37, 1)), ((37, 25), (37, 25), ()),
         ((3, 700), (3, 700), (3, 1)), ((2, 5, 8), (2, 5, 8), (5, 1)),
         ((2, 5, 8), (2, 5, 8), (2, 1, 8)), ((40, 16), (16,), (16,)),
         ((40, 16), (40, 1), (40, 1)), ((40, 16), (), (1, 16)),
         ((40, 16), (40, 16), (40, 16)), ((0, 4), (0, 4), (4,)),
         ((2, 3, 4, 5), (2, 3, 4, 5), (3, 1, 5)), ((37, 24), (24,), (37, 1)),
         ((37, 24), (37, 1), (37, 1)), ((37, 24), (), (37, 1)), ((40, 16), (40, 1), (16,)),
         ((2, 20000), (2, 20000), (2, 1)), ((2, 20000), (20000,), (2, 1)),
         ((2, 20000), (2, 1), (2, 1)), ((2, 20000), (), (2, 1)), ((20000, 8), (20000, 8), (8,)),
         ((20000, 8), (8,), (8,)), ((20000, 8), (20000, 1), (8,)), ((20000, 8), (), (8,)))


#: Sums of 20000 float32 numbers differ from those in float64 by more than one rounding.
_ROUNDED = {"float32": 1e-5}
#: How the second operand of a product is read.
_MODES = ("row", "column", "one", "number", "strided")


def kernels() -> Iterator[Kernel]:
    """A product in every mode, with large indices, and summed by both templates."""
    for dtype in _DTYPES:
        formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (dtype,))
        for mode in _MODES:
            rank = 3 if mode == "strided" else 0
            yield kernel_of(formula, [dtype] * 2, ["each", mode], rank)[0]
        yield kernel_of(formula, [dtype] * 2, ["each", "row"], 0, large=True)[0]
    for dtype in _DTYPES[:4]:
        running = compute_dtype(dtype)
        formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (running,))
        for mode in ("each", *_MODES[:4]):
            operands = (MapOperand(dtype, "each"), MapOperand(dtype, mode))
            for template in ("rows", "columns"):
                width = 16 // numpy_dtype(dtype).itemsize
                for out in dict.fromkeys((dtype, running)):
                    text = summed_text(formula, operands, template, dtype, out, width)
                    yield Kernel(text, summed_entry(formula, operands, template, out))


def checks() -> Iterator[Check]:
    """Products of operands of many shapes and layouts, and their sums."""
    for dtype in _DTYPES:
        yield Check(f"broadcast {dtype}", partial(_broadcast, dtype=dtype))
        yield Check(f"strided {dtype}", partial(_strided, dtype=dtype))
        yield Check(f"numbers {dtype}", partial(_numbers, dtype=dtype))
        yield Check(f"large {dtype}", partial(_large, dtype=dtype))
    for dtype in _DTYPES[:4]:
        yield Check(f"summed {dtype}", partial(_summed, dtype=dtype))


def _product(bench: Bench, dtype: str) -> tuple[DeviceMaps, Any]:
    maps = DeviceMaps(bench.gpu)
    like = CPU.typed(dtypes.as_dtype(dtype))
    return maps, forward_step(multiply.op, [like, like], like).on(maps)


def _values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    if dtype in ("int32", "uint8"):
        return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
    return drawn(shape, seed, 0.5, 2.0, dtype)


def _broadcast(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    for left, right in _PAIRS:
        a, b = _values(dtype, left, 1), _values(dtype, right, 2)
        for misaligned in (False, True):
            (got,) = product(bench.array(a, dtype, misaligned), bench.array(b, dtype))
            bench.same(f"{left} x {right}", got, a * b)
            (got,) = product(bench.array(b, dtype), bench.array(a, dtype, misaligned))
            bench.same(f"{right} x {left}", got, a * b)


def _strided(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    a, b = _values(dtype, (6, 5, 8), 1), _values(dtype, (8, 5, 6), 2)
    left, right = bench.array(a, dtype), bench.array(b, dtype)
    views = ((left, a, right.T, b.T), (left[::2], a[::2], left[1::2], a[1::2]),
             (left[:, :, ::-1], a[:, :, ::-1], left, a), (left[..., 3:4], a[..., 3:4], left, a))
    for x, x_host, y, y_host in views:
        (got,) = product(x, y)
        bench.same("views", got, x_host * y_host)


def _numbers(bench: Bench, dtype: str) -> None:
    _, product = _product(bench, dtype)
    a = _values(dtype, (7, 9), 1)
    for number in (3, 3.0):
        bench.same("x 3", product(bench.array(a, dtype), number)[0], a * 3)
        bench.same("3 x", product(number, bench.array(a.T, dtype))[0], a.T * 3)


def _large(bench: Bench, dtype: str) -> None:
    """The text for more than 2^31 elements, on fewer."""
    formula = MapFormula("multiply", (multiply.op.body(),), multiply.op.params, (dtype,))
    for shape in ((9, 64), (9, 7)):
        a, b = _values(dtype, shape, 1), _values(dtype, shape[1:], 2)
        kernel, _ = kernel_of(formula, [dtype] * 2, ["each", "row"], 0, large=True)
        out = bench.gpu.empty(shape, numpy_dtype(dtype))
        bench.gpu.launch(kernel, (2, 1, 1), (BLOCK, 1, 1), (
            bench.array(a, dtype), bench.array(b, dtype), out, a.size, shape[1]))
        bench.same(f"{shape}", out, a * b)


def _summed(bench: Bench, dtype: str) -> None:
    maps, product = _product(bench, dtype)
    summed = maps.summed(product)
    for left, right, target in _SUMS:
        a, b = _values(dtype, left, 1), _values(dtype, right, 2)
        whole = np.broadcast_to(a * b, np.broadcast_shapes(left, right))
        lead = whole.ndim - len(target)
        axes = tuple(i for i in range(whole.ndim) if i < lead or (
            target[i - lead] == 1 and whole.shape[i] != 1))
        wanted = whole.sum(axis=axes, keepdims=True).reshape(target)
        for misaligned in (False, True):
            got = summed(target, bench.array(a, dtype, misaligned), bench.array(b, dtype))
            bench.same(f"{left} x {right} summed to {target}", got, wanted, _ROUNDED.get(dtype))
    for shape, target in (((37, 24), (37, 1)), ((2, 20000), (2, 1)), ((40, 16), (16,)),
                          ((20000, 8), (8,))):
        a = _values(dtype, shape, 1)
        got = summed(target, bench.array(a, dtype), 2)
        wanted = (a * 2).sum(axis=1 if target[-1] == 1 else 0).reshape(target)
        bench.same(f"{shape} x 2 summed to {target}", got, wanted, _ROUNDED.get(dtype))

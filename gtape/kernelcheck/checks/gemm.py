"""Checks of the matrix products by cuBLASLt, their epilogues, and what stands on them.

They need the library: tests run them on the CPU with a stand-in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.gemm.blaslt import Epilogue
from gtape.devices.cuda.gemm.contractions import einsum, linear_backward, linear_forward
from gtape.devices.cuda.gemm.gemm import matmul
from gtape.devices.cuda.gemm.problem import auxiliary
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong, drawn

#: The emulator has no cuBLASLt.
NEEDS_GPU = True
#: Sides that break the alignment, single lines, and nothing along each axis.
_SIZES = ((1, 1, 1), (3, 5, 7), (31, 33, 32), (64, 40, 24), (1, 17, 9), (17, 1, 9), (8, 16, 1),
          (0, 3, 4), (3, 0, 4), (3, 4, 0))
_BATCHES = (((2, 3, 4), (2, 4, 5)), ((5, 3, 4), (4, 5)), ((3, 4), (5, 4, 6)),
            ((2, 1, 3, 4), (1, 3, 4, 5)), ((2, 3, 4, 2), (3, 2, 5)), ((4, 1, 6), (6, 3)),
            ((2, 3, 1, 4), (2, 1, 4, 2)), ((0, 3, 4), (4, 5)))
#: Columns that need no padding in gelu's aux.
_AUX = (16, 24, 20)


def checks() -> Iterator[Check]:
    for dtype in FLOATS:
        yield from _products(dtype)
        yield from _layouts(dtype)
        for pair in _BATCHES:
            yield _check(f"batch {pair}", dtype, _batched, *pair)
        for beta in (0.0, 1.0, -0.5):
            yield _check(f"beta {beta}", dtype, _scaled, beta)
        yield from _epilogues(dtype)
        for shape, units in _SHAPES:
            for activation in _ACTIVATIONS:
                yield _check(f"linear {shape} {units} {activation}", dtype, _linear_forward, shape,
                             units, activation)
            yield _check(f"linear backward {shape} {units}", dtype, _linear_backward, shape, units)
        for equation, first, second in _CONTRACTIONS:
            yield _check(f"einsum {equation}", dtype, _contracted, equation, first, second)


def _check(name: str, dtype: str, run: Callable[..., None], *args: object) -> Check:
    return Check(f"matmul {name} {dtype}", lambda bench: run(bench, dtype, *args))


def _served(result: object) -> Any:
    """`result`, which must not be None."""
    if result is None:
        raise Wrong("cuBLASLt does not serve this product, or it was not found")
    return result


# ---------------------------------------------------------------- products
def _products(dtype: str) -> Iterator[Check]:
    for size in _SIZES:
        for flags in product((False, True), repeat=2):
            yield _check(f"{size} transposed {flags}", dtype, _plain, size, flags, (False, False))
    for off in ((True, False), (False, True), (True, True)):
        yield _check(f"misaligned {off}", dtype, _plain, (31, 33, 32), (False, True), off)


def _plain(bench: Bench, dtype: str, size: tuple[int, int, int], flags: tuple[bool, bool],
           off: tuple[bool, bool]) -> None:
    m, n, k = size
    a = drawn((k, m) if flags[0] else (m, k), 1, dtype=dtype)
    b = drawn((n, k) if flags[1] else (k, n), 2, dtype=dtype)
    got = matmul(bench.gpu, bench.array(a, dtype, off[0]), bench.array(b, dtype, off[1]),
                 transpose_a=flags[0], transpose_b=flags[1])
    bench.same(f"{size}", _served(got), (a.T if flags[0] else a) @ (b.T if flags[1] else b))


def _layouts(dtype: str) -> Iterator[Check]:
    cases: dict[str, Callable[[Any], Any]] = {
        "transposed view": lambda x: x.swapaxes(-1, -2), "columns cut": lambda x: x[:, 2:],
        "rows skipped": lambda x: x[::2], "columns skipped": lambda x: x[:, ::2],
        "backwards": lambda x: x[::-1], "one column": lambda x: x[:, 3:4],
        "one row": lambda x: x[2:3]}
    for name, view in cases.items():
        yield _check(f"a {name}", dtype, _viewed, view, True)
        yield _check(f"b {name}", dtype, _viewed, view, False)


def _viewed(bench: Bench, dtype: str, view: Callable[[Any], Any], left: bool) -> None:
    x = drawn((18, 14), 3, dtype=dtype)
    inner = view(x).shape[-1 if left else -2]
    y = drawn((5, inner) if not left else (inner, 5), 4, dtype=dtype)
    seen, other = view(bench.array(x, dtype)), bench.array(y, dtype)
    got = matmul(bench.gpu, *((seen, other) if left else (other, seen)))
    bench.same("view", _served(got), view(x) @ y if left else y @ view(x))


def _batched(bench: Bench, dtype: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = drawn(first, 5, dtype=dtype), drawn(second, 6, dtype=dtype)
    one, two = bench.array(a, dtype), bench.array(b, dtype)
    bench.same("batch", _served(matmul(bench.gpu, one, two)), a @ b)
    bench.same("batch of transposed", _served(matmul(
        bench.gpu, two.swapaxes(-1, -2), one, transpose_b=True)), b.swapaxes(-1, -2)
        @ a.swapaxes(-1, -2))
    rows_first = bench.array(np.moveaxis(a, -2, 0), dtype)
    heads = rows_first.transpose(*range(1, a.ndim - 1), 0, a.ndim - 1)
    bench.same("batch of heads", _served(matmul(bench.gpu, heads, two)), a @ b)


def _scaled(bench: Bench, dtype: str, beta: float) -> None:
    for k in (0, 12):
        a, b = drawn((10, k), 7, dtype=dtype), drawn((k, 14), 8, dtype=dtype)
        c = drawn((10, 14), 9, dtype=dtype)
        wide = bench.array(np.concatenate([c, c], 1), dtype)
        got = matmul(bench.gpu, bench.array(a, dtype), bench.array(b, dtype), out=wide[:, :14],
                     alpha=0.75, beta=beta)
        bench.same("scaled", _served(got), 0.75 * (a @ b) + beta * c)
        bench.same("what is beside it", wide[:, 14:], c)


# ---------------------------------------------------------------- epilogues
def _epilogues(dtype: str) -> Iterator[Check]:
    simple = (Epilogue.BIAS, Epilogue.RELU, Epilogue.RELU_BIAS, Epilogue.GELU, Epilogue.GELU_BIAS)
    for epilogue, shape in product(simple, ((7, 5, 3), (16, 24, 20), (6, 8, 0))):
        yield _check(f"{epilogue.name} {shape}", dtype, _activated, epilogue, shape)
    for epilogue in (Epilogue.RELU_AUX, Epilogue.RELU_AUX_BIAS):
        for bias_gradient in (False, True):
            yield _check(f"{epilogue.name} {bias_gradient}", dtype, _relu_and_back, epilogue,
                         bias_gradient)
    for epilogue in (Epilogue.GELU_AUX, Epilogue.GELU_AUX_BIAS):
        yield _check(epilogue.name, dtype, _gelu_saved, epilogue)
    for epilogue in (Epilogue.DGELU, Epilogue.DGELU_BGRAD):
        yield _check(epilogue.name, dtype, _gelu_back, epilogue)
    for flags in product((False, True), repeat=2):
        yield _check(f"BGRADA, BGRADB {flags}", dtype, _bias_gradients, flags)


def _operands(bench: Bench, dtype: str, size: tuple[int, int, int]) -> tuple[Any, ...]:
    m, n, k = size
    host = (drawn((m, k), 10, dtype=dtype), drawn((k, n), 11, dtype=dtype),
            drawn((n,), 12, dtype=dtype))
    return *host, *[bench.array(x, dtype) for x in host]


def _relu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0)


def _gelu(z: np.ndarray) -> np.ndarray:
    """gelu in its form with tanh."""
    return 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def _gelu_slope(z: np.ndarray) -> np.ndarray:
    t = np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))
    return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * np.sqrt(2 / np.pi) * (1 + 0.134145 * z * z)


def _activated(bench: Bench, dtype: str, epilogue: Epilogue, size: tuple[int, int, int]) -> None:
    a, b, bias, one, two, three = _operands(bench, dtype, size)
    z = a @ b + (bias if epilogue.has_bias else 0)
    name = epilogue.name
    wanted = _relu(z) if "RELU" in name else _gelu(z) if "GELU" in name else z
    extra = {"bias": three} if epilogue.has_bias else {}
    bench.same(name, _served(matmul(bench.gpu, one, two, epilogue=epilogue, **extra)), wanted)


def _relu_and_back(bench: Bench, dtype: str, epilogue: Epilogue, bias_gradient: bool) -> None:
    a, b, bias, one, two, three = _operands(bench, dtype, _AUX)
    gpu, (m, n, _) = bench.gpu, _AUX
    mask = auxiliary(gpu, epilogue, m, n, one.dtype)
    extra = {"bias": three} if epilogue.has_bias else {}
    got = matmul(gpu, one, two, epilogue=epilogue, aux=mask, **extra)
    z = a @ b + (bias if epilogue.has_bias else 0)
    bench.same(epilogue.name, _served(got), _relu(z))
    g, w = drawn((m, 8), 13, dtype=dtype), drawn((n, 8), 14, dtype=dtype)
    wanted = (g @ w.T) * (z > 0)
    back = Epilogue.DRELU_BGRAD if bias_gradient else Epilogue.DRELU
    total = {"bias": gpu.empty((n,), one.dtype)} if bias_gradient else {}
    gradient = matmul(gpu, bench.array(g, dtype), bench.array(w, dtype), transpose_b=True,
                      epilogue=back, aux=mask, **total)
    bench.same(back.name, _served(gradient), wanted)
    if bias_gradient:
        bench.same("the bias's gradient", total["bias"], wanted.sum(0))


def _gelu_saved(bench: Bench, dtype: str, epilogue: Epilogue) -> None:
    a, b, bias, one, two, three = _operands(bench, dtype, _AUX)
    aux = auxiliary(bench.gpu, epilogue, _AUX[0], _AUX[1], one.dtype)
    extra = {"bias": three} if epilogue.has_bias else {}
    got = matmul(bench.gpu, one, two, epilogue=epilogue, aux=aux, **extra)
    z = a @ b + (bias if epilogue.has_bias else 0)
    bench.same(epilogue.name, _served(got), _gelu(z))
    bench.same("gelu's input", aux, z)


def _gelu_back(bench: Bench, dtype: str, epilogue: Epilogue) -> None:
    m, n, k = _AUX
    g, w = drawn((m, k), 15, dtype=dtype), drawn((n, k), 16, dtype=dtype)
    z = drawn((m, n), 17, dtype=dtype)
    wanted = (g @ w.T) * _gelu_slope(z)
    total = ({"bias": bench.gpu.empty((n,), bench.array(z, dtype).dtype)}
             if epilogue.has_bias_gradient else {})
    got = matmul(bench.gpu, bench.array(g, dtype), bench.array(w, dtype), transpose_b=True,
                 epilogue=epilogue, aux=bench.array(z, dtype), **total)
    bench.same(epilogue.name, _served(got), wanted)
    if total:
        bench.same("the bias's gradient", total["bias"], wanted.sum(0))


def _bias_gradients(bench: Bench, dtype: str, flags: tuple[bool, bool]) -> None:
    m, n, k = 16, 24, 40
    a = drawn((k, m) if flags[0] else (m, k), 18, dtype=dtype)
    b = drawn((n, k) if flags[1] else (k, n), 19, dtype=dtype)
    one, two = bench.array(a, dtype), bench.array(b, dtype)
    left, right = (a.T if flags[0] else a), (b.T if flags[1] else b)
    for epilogue, wanted in ((Epilogue.BGRADA, right.sum(0)), (Epilogue.BGRADB, left.sum(1))):
        total = bench.gpu.empty(wanted.shape, one.dtype)
        got = matmul(bench.gpu, one, two, transpose_a=flags[0], transpose_b=flags[1],
                     epilogue=epilogue, bias=total)
        bench.same(epilogue.name, _served(got), left @ right)
        bench.same("the bias's gradient", total, wanted)


# ---------------------------------------------------------------- contractions
_ACTIVATIONS = {None: lambda z: z, "relu": lambda z: np.maximum(z, 0), "gelu_tanh": _gelu}
_SHAPES = (((6, 5), 8), ((2, 3, 5), 16), ((33, 24), 40), ((0, 5), 8))
_CONTRACTIONS = (("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
                 ("bhqk,bkhd->bqhd", (2, 4, 3, 6), (2, 6, 4, 5)),
                 ("ijk,jkl->li", (2, 3, 4), (3, 4, 5)), ("bi,bi->b", (3, 4), (3, 4)))


def _linear_forward(bench: Bench, dtype: str, shape: tuple[int, ...], units: int,
             activation: str | None) -> None:
    x, w = drawn(shape, 1, dtype=dtype), drawn((shape[-1], units), 2, dtype=dtype)
    b = drawn((units,), 3, dtype=dtype)
    one, two, three = [bench.array(v, dtype) for v in (x, w, b)]
    z = x @ w + b
    for save in (True, False):
        y, saved = _served(linear_forward(bench.gpu, one, two, three, activation, save))
        bench.same("y", y, _ACTIVATIONS[activation](z))
        if saved is not None:
            bench.same("z", saved, z)


def _linear_backward(bench: Bench, dtype: str, shape: tuple[int, ...], units: int) -> None:
    x, w = drawn(shape, 4, dtype=dtype), drawn((shape[-1], units), 5, dtype=dtype)
    dz = drawn((*shape[:-1], units), 6, dtype=dtype)
    one, two, three = [bench.array(v, dtype) for v in (dz, x, w)]
    dx, dw, db = _served(linear_backward(bench.gpu, one, two, three))
    rows, columns = x.reshape(-1, shape[-1]), dz.reshape(-1, units)
    bench.same("dx", dx, dz @ w.T)
    bench.same("dW", dw, rows.T @ columns)
    bench.same("db", db, columns.sum(0))


def _contracted(bench: Bench, dtype: str, equation: str, first: tuple[int, ...],
                second: tuple[int, ...]) -> None:
    a, b = drawn(first, 7, dtype=dtype), drawn(second, 8, dtype=dtype)
    contracted = einsum(bench.gpu, bench.array(a, dtype), bench.array(b, dtype), equation=equation)
    bench.same(equation, _served(contracted), np.einsum(equation, a, b))

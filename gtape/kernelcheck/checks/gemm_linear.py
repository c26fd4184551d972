"""Checks of what stands on the matrix products: the dense layer, contractions of two arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gtape.core.dtypes import FLOATS
from gtape.devices.cuda.gemm.einsum import einsum
from gtape.devices.cuda.gemm.linear import linear_backward, linear_forward
from gtape.kernelcheck.checks.bench import Bench, Check, drawn
from gtape.kernelcheck.checks.gemm import gelu, served

#: The emulator has no cuBLASLt.
NEEDS_GPU = True
_ACTIVATIONS = {None: lambda z: z, "relu": lambda z: np.maximum(z, 0), "gelu_tanh": gelu}
_SHAPES = (((6, 5), 8), ((2, 3, 5), 16), ((33, 24), 40), ((0, 5), 8))
_CONTRACTIONS = (("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
                 ("bhqk,bkhd->bqhd", (2, 4, 3, 6), (2, 6, 4, 5)),
                 ("ijk,jkl->li", (2, 3, 4), (3, 4, 5)), ("bi,bi->b", (3, 4), (3, 4)))


def checks() -> Iterator[Check]:
    """Every check of the family."""
    for dtype in FLOATS:
        for shape, units in _SHAPES:
            for activation in _ACTIVATIONS:
                yield _check(f"linear {shape} {units} {activation}", dtype, _forward, shape, units,
                             activation)
            yield _check(f"linear backward {shape} {units}", dtype, _backward, shape, units)
        for equation, first, second in _CONTRACTIONS:
            yield _check(f"einsum {equation}", dtype, _contracted, equation, first, second)


def _check(name: str, dtype: str, run: Callable[..., None], *args: object) -> Check:
    return Check(f"{name} {dtype}", lambda bench: run(bench, dtype, *args))


def _forward(bench: Bench, dtype: str, shape: tuple[int, ...], units: int,
             activation: str | None) -> None:
    x, w = drawn(shape, 1, dtype=dtype), drawn((shape[-1], units), 2, dtype=dtype)
    b = drawn((units,), 3, dtype=dtype)
    one, two, three = [bench.array(v, dtype) for v in (x, w, b)]
    z = x @ w + b
    for save in (True, False):
        y, saved = served(linear_forward(bench.gpu, one, two, three, activation, save))
        bench.same("y", y, _ACTIVATIONS[activation](z))
        if saved is not None:
            bench.same("z", saved, z)


def _backward(bench: Bench, dtype: str, shape: tuple[int, ...], units: int) -> None:
    x, w = drawn(shape, 4, dtype=dtype), drawn((shape[-1], units), 5, dtype=dtype)
    dz = drawn((*shape[:-1], units), 6, dtype=dtype)
    one, two, three = [bench.array(v, dtype) for v in (dz, x, w)]
    dx, dw, db = served(linear_backward(bench.gpu, one, two, three))
    rows, columns = x.reshape(-1, shape[-1]), dz.reshape(-1, units)
    bench.same("dx", dx, dz @ w.T)
    bench.same("dW", dw, rows.T @ columns)
    bench.same("db", db, columns.sum(0))


def _contracted(bench: Bench, dtype: str, equation: str, first: tuple[int, ...],
                second: tuple[int, ...]) -> None:
    a, b = drawn(first, 7, dtype=dtype), drawn(second, 8, dtype=dtype)
    contracted = einsum(bench.gpu, bench.array(a, dtype), bench.array(b, dtype),
                        equation=equation)
    bench.same(equation, served(contracted), np.einsum(equation, a, b))

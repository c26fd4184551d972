"""Linear systems that NumPy and CuPy have no routine for: triangular, tridiagonal, and LU."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from .precision import Array

#: Blocks of the diagonal are solved by LAPACK's general routine, which does not know that they are
#: triangular; nearly all of a large matrix lies outside of them, and is products.
_BLOCK = 64


def solve_triangular(xp: ModuleType, a: Array, b: Array, lower: bool) -> Array:
    """x with T x = b, T the lower (or upper) triangle of a [..., n, n]; b is [..., n, m], of the
    same batch.

    Block substitution: one small solve for each block of the diagonal, the rest matrix products.

    Raises:
        numpy.linalg.LinAlgError: a zero on the diagonal.
    """
    n = a.shape[-1]
    triangle = xp.tril if lower else xp.triu
    if n <= _BLOCK:
        return xp.linalg.solve(triangle(a), b)
    x = xp.empty(b.shape, b.dtype)
    starts = range(0, n, _BLOCK)
    for start in starts if lower else reversed(starts):
        here = slice(start, min(start + _BLOCK, n))
        done = slice(0, start) if lower else slice(here.stop, n)
        rest = b[..., here, :] - xp.matmul(a[..., here, done], x[..., done, :])
        x[..., here, :] = xp.linalg.solve(triangle(a[..., here, here]), rest)
    return x


def factor_lu(xp: Any, a: Any) -> tuple[Any, Any]:
    """(LU, p): both triangles in one array, and the row order, with a[p] = L U.

    Gaussian elimination with partial pivoting, column by column, all matrices of a batch at once.
    """
    n = a.shape[-1]
    batch = a.shape[:-2]
    m = xp.array(a).reshape(math.prod(batch), n, n)
    order = xp.broadcast_to(xp.arange(n), (m.shape[0], n)).copy()
    each = xp.arange(m.shape[0])
    for j in range(n):
        pivot = xp.argmax(xp.abs(m[:, j:, j]), axis=1) + j
        for array in (m, order):
            swapped = array[each, pivot].copy()
            array[each, pivot] = array[:, j]
            array[:, j] = swapped
        # A pivot of 0 has zeros below it, which stay.
        m[:, j + 1:, j] /= xp.where(m[:, j, j] == 0, 1, m[:, j, j])[:, None]
        m[:, j + 1:, j + 1:] -= m[:, j + 1:, j, None] * m[:, j, None, j + 1:]
    return m.reshape(a.shape), order.reshape((*batch, n))


def solve_tridiagonal(xp: ModuleType, upper: Array, main: Array, lower: Array, b: Array,
                      pivoting: bool) -> Array:
    """x with upper[i] x[i+1] + main[i] x[i] + lower[i] x[i-1] = b[i].

    The diagonals are [..., n], b is [..., n, m]. Gaussian elimination; with pivoting, of two
    neighbouring rows the one with the larger leading entry goes first.

    Raises:
        numpy.linalg.LinAlgError: a pivot is 0.
    """
    n = main.shape[-1]
    d, u, x = xp.array(main), xp.array(upper), xp.array(b)
    u[..., n - 1:] = 0
    second = xp.zeros_like(u)
    for i in range(n - 1):
        row = [d[..., i], u[..., i], second[..., i]]
        below = [lower[..., i + 1], d[..., i + 1], u[..., i + 1]]
        bi, bj = x[..., i, :], x[..., i + 1, :]
        if pivoting:
            swap = xp.abs(below[0]) > xp.abs(row[0])
            row, below = ([xp.where(swap, q, p) for p, q in zip(row, below)],
                          [xp.where(swap, p, q) for p, q in zip(row, below)])
            many = swap[..., None]
            bi, bj = xp.where(many, bj, bi), xp.where(many, bi, bj)
        factor = below[0] / row[0]
        d[..., i], u[..., i], second[..., i] = row
        d[..., i + 1] = below[1] - factor * row[1]
        u[..., i + 1] = below[2] - factor * row[2]
        x[..., i, :] = bi
        x[..., i + 1, :] = bj - factor[..., None] * bi
    if bool((d == 0).any()):
        raise np.linalg.LinAlgError("A pivot is 0")
    return _back_substituted(d, u, second, x)


def _back_substituted(d: Array, u: Array, second: Array, x: Array) -> Array:
    n = d.shape[-1]
    for i in reversed(range(n)):
        value = x[..., i, :]
        if i + 1 < n:
            value = value - u[..., i, None] * x[..., i + 1, :]
        if i + 2 < n:
            value = value - second[..., i, None] * x[..., i + 2, :]
        x[..., i, :] = value / d[..., i, None]
    return x

"""Linear systems that NumPy and CuPy have no routine for (triangular, tridiagonal, LU), cofactor
matrices, and what becomes of matrices that hold nan or inf.

With a = U S Vᴴ the cofactors are det(U) det(Vᴴ) conj(U) diag(Πⱼ≠ᵢ sⱼ) Vᵀ: products of the other
singular values, with no division, and so exact for singular matrices too (Giles 2008, sections
2.2.4 and 3).

Of nan and inf the routines of LAPACK do not say what becomes: a pivot search passes nan by, so that
a determinant may come out as 0 and a system as a number; an iteration fails, and with it the whole
batch. So these matrices never reach a routine: each of a batch for itself is replaced by the
identity, and its results by what a `NonfiniteRule` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array

#: Blocks of the diagonal are solved by LAPACK's general routine, which does not know that they are
#: triangular; nearly all of a large matrix lies outside of them, and is products.
_BLOCK = 64


def solve_triangular(xp: ModuleType, a: Array, b: Array, lower: bool) -> Array:
    """x with T x = b, T the lower (or upper) triangle of a [..., n, n]; b is [..., n, m], of the
    same batch. Block substitution: one small solve for each block of the diagonal, the rest matrix
    products. Raises numpy.linalg.LinAlgError: a zero on the diagonal."""
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
    """(LU, p): both triangles in one array, and the row order, with a[p] = L U. Gaussian
    elimination with partial pivoting, column by column, all matrices of a batch at once."""
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
    """x with upper[i] x[i+1] + main[i] x[i] + lower[i] x[i-1] = b[i]. The diagonals are [..., n], b
    is [..., n, m]. Gaussian elimination; with pivoting, of two neighbouring rows the one with the
    larger leading entry goes first. Raises numpy.linalg.LinAlgError: a pivot is 0."""
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


def determinant(xp: Any, a: Any) -> Any:
    """det(a) of matrices with inf or nan, as elimination in their arithmetic gives it."""
    triangles, order = factor_lu(xp, a)
    swaps = xp.linalg.det(xp.eye(a.shape[-1])[order])
    product = swaps.astype(a.dtype) * xp.diagonal(triangles, axis1=-2, axis2=-1).prod(axis=-1)
    # A pivot of 0 beside an inf: 0 inf, which elimination passes by.
    return xp.where(product == 0, math.nan, product).astype(a.dtype)


def cofactors(xp: ModuleType, a: Array) -> Array:
    """y[i, j] = ∂det(a)/∂a[i, j] for square matrices [..., n, n]."""
    if xp is np and a.size:
        inverse = _by_inverse(a)
        if inverse is not None:
            return inverse
    u, s, vh = xp.linalg.svd(a)
    left = _signed(xp, u, vh) * xp.conj(u)
    return xp.matmul(left * _products_without_one(xp, s)[..., None, :], xp.conj(vh))


def _by_inverse(a: np.ndarray) -> np.ndarray | None:
    """det(a) a⁻ᵀ, when every matrix is far enough from singular for it to be accurate."""
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    condition = np.abs(a).max((-1, -2)) * np.abs(inverse).max((-1, -2)) * a.shape[-1]
    # An inverse loses as many digits as the condition has: up to here half of them are left.
    limit = 1 / np.sqrt(np.finfo(a.dtype).eps)
    if not (condition < limit).all():
        return None
    return np.linalg.det(a)[..., None, None] * np.swapaxes(inverse, -1, -2)


def cofactor_change(xp: ModuleType, a: Array, h: Array) -> Array:
    """The derivative of `cofactors(a)` along h: linear in h, and its own transpose."""
    u, s, vh = xp.linalg.svd(a)
    v = xp.conj(xp.swapaxes(vh, -1, -2))
    k = xp.matmul(xp.conj(xp.swapaxes(u, -1, -2)), xp.matmul(h, v))
    pairs = _products_without_two(xp, s)
    diagonal = xp.diagonal(k, axis1=-2, axis2=-1)
    moved = -pairs * xp.swapaxes(k, -1, -2)
    n = s.shape[-1]
    on_diagonal = xp.matmul(pairs.astype(k.dtype), diagonal[..., None])
    moved = moved + on_diagonal * xp.eye(n, dtype=s.dtype)
    left = _signed(xp, u, vh) * xp.conj(u)
    return xp.matmul(left, xp.matmul(moved, xp.conj(vh)))


def _signed(xp: ModuleType, u: Array, vh: Array) -> Array:
    return (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]


def _products_without_one(xp: ModuleType, s: Array) -> Array:
    """y[i] = Πⱼ≠ᵢ s[j]."""
    one = xp.ones_like(s[..., :1])
    # Without dividing the product of all, which would make nan where one is 0.
    before = xp.concatenate([one, xp.cumprod(s[..., :-1], axis=-1)], axis=-1)
    after = xp.concatenate([one, xp.cumprod(s[..., :0:-1], axis=-1)], axis=-1)
    return before * after[..., ::-1]


def _products_without_two(xp: ModuleType, s: Array) -> Array:
    """y[i, j] = Π s[k] over k other than i and j; 0 where i = j."""
    n = s.shape[-1]
    rows = []
    for i in range(n):
        without = xp.concatenate([s[..., :i], xp.ones_like(s[..., :1]), s[..., i + 1:]], axis=-1)
        row = _products_without_one(xp, without)
        row[..., i] = 0
        rows.append(row)
    return xp.stack(rows, axis=-2) if rows else xp.zeros((*s.shape, 0), s.dtype)


class NonfiniteRule(NamedTuple):
    """How matrices with nan or inf are treated: the results of those that are left out are nan,
    unless `instead` computes them."""

    #: Whether inf is left out too: elimination computes with it, iterations do not.
    infinite: bool = True
    #: The part of the matrices that is read: xp, a -> a with the rest finite.
    part: Callable[[Any, Any], Any] | None = None
    #: Replaces the routine for the matrices left out.
    instead: Callable[..., Any] | None = None


NAN = NonfiniteRule()
#: Elimination: an inf goes through as 1/inf = 0 does.
ONLY_NAN = NonfiniteRule(infinite=False)


def lower(rule: NonfiniteRule) -> NonfiniteRule:
    """The rule for a routine that reads the lower triangle."""
    return rule._replace(part=lambda xp, a: xp.tril(a))


def upper(rule: NonfiniteRule) -> NonfiniteRule:
    return rule._replace(part=lambda xp, a: xp.triu(a))


def guarded(xp: Any, routine: Callable[..., object], arrays: Sequence[Any],
            rule: NonfiniteRule) -> Any:
    """routine(*arrays), but for the matrices of the first array that `rule` leaves out."""
    a = arrays[0]
    # One pass in BLAS; a sum that overflows is looked at again below.
    if xp is np and math.isfinite(np.vdot(a, a).real):
        return routine(*arrays)
    seen = a if rule.part is None else rule.part(xp, a)
    bad = ~xp.isfinite(seen) if rule.infinite else xp.isnan(seen)
    out = bad.any(axis=(-2, -1))
    if not bool(out.any()):
        return routine(*arrays)
    eye = xp.eye(*a.shape[-2:], dtype=a.dtype)
    result = routine(xp.where(out[..., None, None], eye, a), *arrays[1:])
    other = None if rule.instead is None else rule.instead(*arrays)
    if isinstance(result, tuple):
        others = other or (None,) * len(result)
        return tuple([_filled(xp, m, out, o) for m, o in zip(result, others)])
    return _filled(xp, result, out, other)


def _filled(xp: ModuleType, result: Any, out: Array, other: object) -> Any:
    """`result` with `other`, or nan, for the matrices left out; orders of rows stay as they are."""
    if other is None and result.dtype.kind not in "fc":
        return result
    mask = out.reshape(out.shape + (1,) * (result.ndim - out.ndim))
    return xp.where(mask, math.nan if other is None else other, result).astype(result.dtype)

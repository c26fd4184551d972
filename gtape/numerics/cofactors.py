"""Cofactor matrices and their derivative, exact for singular matrices too.

With a = U S Vᴴ the cofactors are det(U) det(Vᴴ) conj(U) diag(Πⱼ≠ᵢ sⱼ) Vᵀ: products of the other
singular values, with no division (Giles 2008, sections 2.2.4 and 3).
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from gtape.numerics.triangular import factor_lu

from .precision import Array


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

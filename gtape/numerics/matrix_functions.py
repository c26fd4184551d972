"""exp, log and square root of matrices by products and inverses, which both array modules have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Numerator coefficients of the [13/13] Padé approximant of exp, and the norm up to which it is
#: accurate to double precision (Higham 2005, doi:10.1137/04061101X, table 2.3).
_PADE = [math.factorial(26 - k) // (math.factorial(13 - k) * math.factorial(k)) / 1.0
         for k in range(14)]
_REACH = 5.37
_ROOTS = 40
_NEWTON = 60
_NEAR_ONE = 0.25
_ON_THE_CUT = 1e-6


def exponential(xp: Any, a: Any) -> Any:
    """Σ aᵏ / k! by scaling, the [13/13] Padé approximant and squaring."""
    n = a.shape[-1]
    if not a.size:
        return a
    size = float(xp.abs(a).sum(axis=-2).max())
    squarings = max(0, math.ceil(math.log2(size / _REACH))) if 0 < size < math.inf else 0
    a = a / a.dtype.type(2.0 ** squarings)
    eye = xp.eye(n, dtype=a.dtype)
    scale = _PADE[13]
    b = [a.dtype.type(c / scale) for c in _PADE]
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
               + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = (a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
            + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye)
    made = xp.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        made = made @ made
    return made


def square_root(xp: Any, a: Any) -> Any:
    """The principal square root; nan for real matrices with negative eigenvalues."""
    if not a.size:
        return a
    made = _iterated_root(xp, a)
    if a.dtype.kind != "c" or bool(xp.isfinite(made).all()):
        return made
    turn = np.exp(-1j * _free_angle(a))
    return _iterated_root(xp, a * a.dtype.type(turn)) / a.dtype.type(np.sqrt(turn))


def _free_angle(a: Any) -> float:
    """By how much all eigenvalues can be turned clockwise so that those on the negative real axis
    leave it and none crosses it."""
    host = a.get() if hasattr(a, "get") else a
    above = np.angle(np.linalg.eigvals(host)) + math.pi
    above = above[(above > _ON_THE_CUT) & (above < 2 * math.pi - _ON_THE_CUT)]
    return float(min(1.0, above.min(initial=2.0) / 2))


def _iterated_root(xp: Any, a: Any) -> Any:
    """The scaled product form of Denman and Beavers' iteration; nan where it does not converge.

    Cheng, Higham, Kenney & Laub 2001, doi:10.1137/S0895479899364015.
    """
    n = a.shape[-1]
    eye = xp.eye(n, dtype=a.dtype)
    unit = float(np.finfo(a.dtype).eps)
    x, m = a, a
    before = math.inf
    for _ in range(_NEWTON):
        if before > 1e-2:
            det = xp.abs(xp.linalg.det(m))[..., None, None]
            scale = xp.where(det > 0, det ** (-1 / (2 * n)), 1).astype(a.dtype)
        else:
            scale = a.dtype.type(1)
        inverse = xp.linalg.inv(m)
        s2 = scale * scale
        x = scale * (x @ (eye + inverse / s2)) / 2
        m = (eye + (s2 * m + inverse / s2) / 2) / 2
        error = float(xp.abs(m - eye).max())
        if not error > 4 * n * unit or (error >= before and error < 1e-3):
            return x
        before = error
    return xp.where(xp.ones(a.shape, bool), xp.asarray(np.nan, a.dtype), x)


def logarithm(xp: Any, a: Any) -> Any:
    """The principal logarithm: square roots until a is near 1, then a Padé approximant.

    The approximant is a sum over Gauss-Legendre points (Higham 2008, Functions of Matrices, 11.4).
    """
    n = a.shape[-1]
    if not a.size:
        return a
    eye = xp.eye(n, dtype=a.dtype)
    roots = 0
    while float(xp.abs(a - eye).sum(axis=-2).max()) > _NEAR_ONE and roots < _ROOTS:
        a = square_root(xp, a)
        roots += 1
    points, weights = np.polynomial.legendre.leggauss(8)
    x = a - eye
    made = xp.zeros_like(a)
    for point, weight in zip((points + 1) / 2, weights / 2):
        made = made + a.dtype.type(weight) * xp.linalg.solve(eye + a.dtype.type(point) * x, x)
    return made * a.dtype.type(2.0 ** roots)

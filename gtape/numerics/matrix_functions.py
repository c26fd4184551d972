"""exp, log and square root of matrices, and the complex Schur form a = q t qᴴ, t upper triangular,
which NumPy has no routine for."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType

import numpy as np

from .arrays import Array

#: Numerator coefficients of the [13/13] Padé approximant of exp, and the norm up to which it is
#: accurate to double precision (Higham 2005, doi:10.1137/04061101X, table 2.3).
_PADE = [math.factorial(26 - k) // (math.factorial(13 - k) * math.factorial(k)) / 1.0
         for k in range(14)]
_REACH = 5.37
#: From 1e308 it takes 12 roots to come near 1; one more for each digit off the diagonal.
_ROOTS = 100
#: Eight points give float64's precision up to 0.3.
_NEAR_ONE = 0.25


def exponential(xp: ModuleType, a: Array) -> Array:
    """Σ aᵏ / k! by scaling, the [13/13] Padé approximant and squaring, each matrix by itself."""
    n = a.shape[-1]
    if not a.size:
        return a
    # The 1-norm, in which Higham states how far the approximant reaches.
    size = xp.abs(a).sum(axis=-2).max(axis=-1)[..., None, None].astype(np.float64)
    squarings = xp.ceil(xp.log2(xp.maximum(size / _REACH, 1.0)))
    a = a / xp.exp2(squarings).astype(size.dtype).astype(a.dtype)
    eye = xp.eye(n, dtype=a.dtype)
    b = [a.dtype.type(c) for c in _PADE]
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
               + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    even = (a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
            + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye)
    power = xp.linalg.solve(even - odd, even + odd)
    for done in range(int(squarings.max())):
        power = xp.where(squarings > done, power @ power, power)
    return power


def square_root(xp: ModuleType, a: Array) -> Array:
    """The principal square root; nan for real matrices with negative eigenvalues. Raises
    numpy.linalg.LinAlgError: a singular matrix has none."""
    return _by_schur(xp, a, lambda t: _triangular_root(t) if _has_root(t, a) else None)


def _has_root(t: np.ndarray, a: Array) -> bool:
    """Real matrices with negative eigenvalues have no real principal root."""
    if a.dtype.kind == "c":
        return True
    values = np.diagonal(t)
    near = t.shape[-1] * np.finfo(t.dtype).eps * np.linalg.norm(t)
    return not ((values.real < 0) & (np.abs(values.imag) <= near)).any()


def _by_schur(xp: ModuleType, a: Array, function: Callable[[np.ndarray], np.ndarray | None],
              ) -> Array:
    """q function(t) qᴴ for each matrix q t qᴴ, in double precision on the host, and nan where the
    function of the triangular matrix t is None."""
    if not a.size:
        return a
    host = a.get() if hasattr(a, "get") else a
    results = np.empty(host.shape, a.dtype)
    for at in np.ndindex(*host.shape[:-2]):
        q, t = schur(host[at].astype(np.complex128))
        upper = function(t)
        whole = math.nan if upper is None else q @ upper @ q.conj().T
        results[at] = whole if a.dtype.kind == "c" else np.real(whole)
    return xp.asarray(results)


def _triangular_root(t: np.ndarray) -> np.ndarray:
    """The principal root u of an upper triangular matrix, by columns: u[i, j] follows from
    t[i, j] = Σ u[i, k] u[k, j] (Björck & Hammarling 1983, doi:10.1016/0024-3795(83)80010-X)."""
    n = t.shape[-1]
    near = n * np.finfo(t.dtype).eps * max(float(np.linalg.norm(t)), np.finfo(np.float64).tiny)
    u = np.diag(np.sqrt(np.diagonal(t)))
    for j in range(n):
        for i in reversed(range(j)):
            rest = t[i, j] - u[i, i + 1:j] @ u[i + 1:j, j]
            both = u[i, i] + u[j, j]
            if both:
                u[i, j] = rest / both
            elif abs(rest) > near:
                raise np.linalg.LinAlgError("No root of a singular matrix")
    return u


def logarithm(xp: ModuleType, a: Array) -> Array:
    """The principal logarithm: square roots until a is near 1, then a Padé approximant. Raises
    numpy.linalg.LinAlgError: a matrix is singular."""
    return _by_schur(xp, a, _triangular_logarithm)


def _triangular_logarithm(t: np.ndarray) -> np.ndarray:
    # The approximant is a sum over Gauss-Legendre points (Higham 2008, Functions of Matrices,
    # 11.4). Roots cancel digits of the diagonal, whose logarithm is known.
    values = np.diagonal(t)
    if not values.all():
        raise np.linalg.LinAlgError("Singular matrix")
    eye = np.eye(t.shape[-1])
    roots = 0
    while np.abs(t - eye).sum(axis=-2).max(initial=0.0) > _NEAR_ONE and roots < _ROOTS:
        t = _triangular_root(t)
        roots += 1
    points, weights = np.polynomial.legendre.leggauss(8)
    x = t - eye
    total = np.zeros_like(t)
    for point, weight in zip((points + 1) / 2, weights / 2):
        total += weight * np.linalg.solve(eye + point * x, x)
    total *= 2.0 ** roots
    np.fill_diagonal(total, np.log(values))
    return total


_EPS = float(np.finfo(np.float64).eps)
#: QR steps for each eigenvalue before a block counts as converged; two or three are usual.
_STEPS = 60


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q, t) with a = q t qᴴ for one complex128 matrix [n, n] without nan or inf. A matrix that has
    a zero block in its lower left corner already is taken apart there, so that the eigenvalues of
    triangular matrices are exact, and those of [[a, e], [0, a]], from which derivatives of matrix
    functions are read, as accurate as those of a. Raises numpy.linalg.LinAlgError: the eigenvectors
    that it starts from were not found."""
    n = a.shape[-1]
    q = np.zeros_like(a)
    bounds = _blocks(a)
    for low, high in pairwise(bounds):
        q[low:high, low:high] = _basis(a[low:high, low:high])
    t = q.conj().T @ a @ q
    for low, high in pairwise(bounds):
        t[high:, low:high] = 0
        _settle(t[low:high, low:high])
    t[np.tril_indices(n, -1)] = 0
    return q, t


def _blocks(a: np.ndarray) -> list[int]:
    """Where the diagonal blocks of a block upper triangular matrix begin, and its size."""
    n = a.shape[-1]
    last = np.where(a != 0, np.arange(n)[:, None], 0).max(axis=0)
    reach = np.maximum.accumulate(np.maximum(last, np.arange(n)))
    return [0, *(k for k in range(1, n) if reach[k - 1] < k), n]


def _basis(a: np.ndarray) -> np.ndarray:
    """A unitary q with qᴴ a q upper triangular. The columns of q are the eigenvectors made
    orthogonal. Where these are so near to dependent that some of the lower triangle is left,
    shifted QR steps finish (Golub & Van Loan 2013, 7.3)."""
    if a.shape[-1] == 1:
        return np.ones((1, 1), a.dtype)
    # One call of LAPACK does nearly all of it; QR steps in Python, from the start, would be two or
    # three for each eigenvalue.
    q = np.linalg.qr(np.linalg.eig(a)[1])[0]
    t = q.conj().T @ a @ q
    small = _EPS * max(float(np.linalg.norm(a)), np.finfo(np.float64).tiny)
    high = a.shape[-1]
    for _ in range(_STEPS * high):
        high = _unfinished(t, high, small * a.shape[-1])
        if high <= 1:
            break
        active = slice(0, high)
        shift = _shift(t[high - 2:high, high - 2:high]) * np.eye(high)
        turn = np.linalg.qr(t[active, active] - shift)[0]
        t[active] = turn.conj().T @ t[active]
        t[:, active] = t[:, active] @ turn
        q[:, active] = q[:, active] @ turn
    return q


def _unfinished(t: np.ndarray, high: int, small: float) -> int:
    """The size of the leading block below which the last row is not yet zero."""
    while high > 1 and np.abs(t[high - 1, :high - 1]).max() <= small:
        t[high - 1, :high - 1] = 0
        high -= 1
    return high


def _shift(corner: np.ndarray) -> complex:
    """Wilkinson's: the eigenvalue of the last two rows and columns nearest to the last entry."""
    values = np.linalg.eigvals(corner)
    return complex(values[np.abs(values - corner[1, 1]).argmin()])


def _settle(t: np.ndarray) -> None:
    """Eigenvalues that rounding alone tells from 0 are 0, and those that it alone tells from
    negative numbers are these, so that it does not choose the side of a cut along them."""
    if t.shape[-1] > 1:
        on = np.einsum("ii->i", t)
        near = t.shape[-1] * _EPS * np.linalg.norm(t)
        on[np.abs(on) <= near] = 0
        on.imag[(on.real < 0) & (np.abs(on.imag) <= near)] = 0

"""The complex Schur form a = q t qᴴ, t upper triangular, which NumPy has no routine for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

_EPS = float(np.finfo(np.float64).eps)
#: QR steps for each eigenvalue before a block counts as converged; two or three are usual.
_STEPS = 60


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q, t) with a = q t qᴴ for one complex128 matrix [n, n] without nan or inf.

    A matrix that has a zero block in its lower left corner already is taken apart there, so that
    the eigenvalues of triangular matrices are exact, and those of [[a, e], [0, a]], from which
    derivatives of matrix functions are read, as accurate as those of a.

    Raises:
        numpy.linalg.LinAlgError: the eigenvectors that it starts from were not found.
    """
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
    """A unitary q with qᴴ a q upper triangular.

    The columns of q are the eigenvectors made orthogonal. Where these are so near to dependent
    that some of the lower triangle is left, shifted QR steps finish (Golub & Van Loan 2013, 7.3).
    """
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

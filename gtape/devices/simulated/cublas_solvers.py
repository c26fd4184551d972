"""cuBLAS beyond products: triangular systems, LU of batches, matrices of special forms."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.devices.simulated.cublas import LETTERS, LIBRARIES, handles, library, put, scalar
from gtape.devices.simulated.cusolver_base import LEFT, LOWER, each_pointer, matrix, real_of, vector
from gtape.devices.simulated.cusolver_factors import lu, lu_solve
from gtape.devices.simulated.device_arrays import array, later

__all__ = ["LIBRARIES"]
_SUCCESS, _INVALID, _FAILED, _NOT_SUPPORTED = 0, 7, 13, 15
_P, _I = ctypes.c_void_p, ctypes.c_int


def _submit(handle: int, run: Callable[[], object]) -> int:
    return _FAILED if later(handles[handle].stream, run) else _SUCCESS


# ------------------------------------------------------------------ triangular systems


def _triangular(a: np.ndarray, b: np.ndarray, alpha: Any, side: int, uplo: int, operation: int,
                unit: int) -> None:
    """op(A) X = alpha B, or X op(A) = alpha B, where B lies."""
    from scipy.linalg.blas import get_blas_funcs  # late: most programs solve no systems

    if b.size:  # SciPy's wrappers are not made for empty matrices
        b[...] = get_blas_funcs("trsm", dtype=a.dtype)(
            alpha, a, b, side=side != LEFT, lower=uplo == LOWER, trans_a=operation, diag=unit)


def _triangular_of(letter: str, kind: np.dtype) -> None:
    def refused(m: int, n: int, side: int, lda: int, ldb: int) -> bool:
        return min(m, n) < 0 or lda < max(1, m if side == LEFT else n) or ldb < max(1, m)

    def trsm(h: int, side: int, uplo: int, operation: int, unit: int, m: int, n: int, alpha: int,
             a: int, lda: int, b: int, ldb: int) -> int:
        if refused(m, n, side, lda, ldb):
            return _INVALID
        by, order = scalar(handles[h], alpha, kind), m if side == LEFT else n
        return _submit(h, lambda: _triangular(
            matrix(a, order, order, kind, lda), matrix(b, m, n, kind, ldb, written=True), by(),
            side, uplo, operation, unit))

    def batched(h: int, side: int, uplo: int, operation: int, unit: int, m: int, n: int, alpha: int,
                a: int, lda: int, b: int, ldb: int, count: int) -> int:
        if refused(m, n, side, lda, ldb) or count < 0:
            return _INVALID
        by, order = scalar(handles[h], alpha, kind), m if side == LEFT else n

        def run() -> None:
            for left, right in zip(each_pointer(a, count), each_pointer(b, count)):
                _triangular(matrix(left, order, order, kind, lda),
                            matrix(right, m, n, kind, ldb, written=True), by(), side, uplo,
                            operation, unit)

        return _submit(h, run)

    first = (_P, _I, _I, _I, _I, _I, _I, _P, _P, _I, _P, _I)
    library.function(f"{letter}trsm_v2", *first)(trsm)
    library.function(f"{letter}trsmBatched", *first, _I)(batched)


# ------------------------------------------------------------------ LU of batches


def _row(pivots: int | None, i: int, n: int, *, written: bool = False) -> np.ndarray | None:
    """The pivots of a matrix; none where rows were not exchanged."""
    return vector(pivots + 4 * i * n, n, np.int32, written=written) if pivots else None


def _lu_of(letter: str, kind: np.dtype) -> None:
    def getrf(h: int, n: int, a: int, lda: int, pivots: int | None, info: int, count: int) -> int:
        if n < 0 or lda < max(1, n) or count < 0:
            return _INVALID

        def run() -> None:
            told = vector(info, count, np.int32, written=True)
            for i, address in enumerate(each_pointer(a, count)):
                told[i] = lu(matrix(address, n, n, kind, lda, written=True),
                             _row(pivots, i, n, written=True))

        return _submit(h, run)

    library.function(f"{letter}getrfBatched", _P, _I, _P, _I, _P, _P, _I)(getrf)


def _solutions_of(letter: str, kind: np.dtype) -> None:
    def getri(h: int, n: int, a: int, lda: int, pivots: int | None, c: int, ldc: int, info: int,
              count: int) -> int:
        if n < 0 or min(lda, ldc) < max(1, n) or count < 0:
            return _INVALID

        def run() -> None:
            told = vector(info, count, np.int32, written=True)
            for i, (address, to) in enumerate(zip(each_pointer(a, count), each_pointer(c, count))):
                factors = matrix(address, n, n, kind, lda)
                zeros = np.flatnonzero(np.diagonal(factors) == 0)
                told[i] = zeros[0] + 1 if len(zeros) else 0  # info counts from 1
                inverse = np.eye(n, dtype=kind)
                with np.errstate(all="ignore"):
                    lu_solve(factors, _row(pivots, i, n), inverse, 0)
                matrix(to, n, n, kind, ldc, written=True)[...] = inverse

        return _submit(h, run)

    def getrs(h: int, operation: int, n: int, nrhs: int, a: int, lda: int, pivots: int | None,
              b: int, ldb: int, info: int, count: int) -> int:
        refused = min(n, nrhs, count) < 0 or min(lda, ldb) < max(1, n)
        _I.from_address(info).value = -1 if refused else 0  # in memory of the host
        if refused:
            return _INVALID

        def run() -> None:
            for i, (left, right) in enumerate(zip(each_pointer(a, count), each_pointer(b, count))):
                lu_solve(matrix(left, n, n, kind, lda), _row(pivots, i, n),
                         matrix(right, n, nrhs, kind, ldb, written=True), operation)

        return _submit(h, run)

    library.function(f"{letter}getriBatched", _P, _I, _P, _I, _P, _P, _I, _P, _I)(getri)
    library.function(f"{letter}getrsBatched", _P, _I, _I, _I, _P, _I, _P, _P, _I, _P, _I)(getrs)


# ------------------------------------------------------------------ special forms


def _triangle(n: int, uplo: int) -> np.ndarray:
    """Where a matrix has the elements of one triangle."""
    lower = np.tri(n, dtype=bool)
    return lower if uplo == LOWER else lower.T


def _forms_of(letter: str, kind: np.dtype) -> None:
    def syrk(h: int, uplo: int, operation: int, n: int, k: int, alpha: int, a: int, lda: int,
             beta: int, c: int, ldc: int) -> int:
        """One triangle of C = alpha A A^T + beta C, or with A^T A."""
        rows = k if operation else n
        if min(n, k) < 0 or lda < max(1, rows) or ldc < max(1, n) or (
                kind.kind == "c" and operation not in range(2)):  # conjugated, that is herk
            return _INVALID
        by, plus = scalar(handles[h], alpha, kind), scalar(handles[h], beta, kind)

        def run() -> None:
            left = matrix(a, rows, n if operation else k, kind, lda)
            left = left.T if operation else left
            wide = left.astype(np.result_type(kind, np.float64))  # rounded once, as in cublaslt
            result, target = by() * (wide @ wide.T), matrix(c, n, n, kind, ldc, written=True)
            if plus() != 0:
                result = result + plus() * target
            # Only one triangle is BLAS' to write.
            np.copyto(target, result.astype(kind), where=_triangle(n, uplo))

        return _submit(h, run)

    library.function(f"{letter}syrk_v2", _P, _I, _I, _I, _I, _P, _P, _I, _P, _P, _I)(syrk)


def _scaled_of(letter: str, kind: np.dtype) -> None:
    def dgmm(h: int, side: int, m: int, n: int, a: int, lda: int, x: int, step: int, c: int,
             ldc: int) -> int:
        """diag(x) A, or A diag(x)."""
        if min(m, n) < 0 or min(lda, ldc) < max(1, m):
            return _INVALID
        count = m if side == LEFT else n

        def run() -> None:
            # A step below 0 reads x from its end, one of 0 its first element always.
            start = x - min(step, 0) * (count - 1) * kind.itemsize
            scales = array(start, (count,), kind, (step,)) if step > 0 else np.array([
                array(start + i * step * kind.itemsize, (), kind)[()] for i in range(count)], kind)
            found = matrix(a, m, n, kind, lda)
            matrix(c, m, n, kind, ldc, written=True)[...] = (
                scales[:, None] * found if side == LEFT else found * scales)

        return _submit(h, run)

    library.function(f"{letter}dgmm", _P, _I, _I, _I, _P, _I, _P, _I, _P, _I)(dgmm)


def _real_forms_of(letter: str, kind: np.dtype) -> None:
    def sbmv(h: int, uplo: int, n: int, k: int, alpha: int, a: int, lda: int, x: int, incx: int,
             beta: int, y: int, incy: int) -> int:
        """y = alpha A x + beta y, A symmetric with k diagonals beside the main one."""
        if min(n, k) < 0 or lda < k + 1 or min(incx, incy) < 1:
            return _INVALID
        by, plus = scalar(handles[h], alpha, kind), scalar(handles[h], beta, kind)

        def run() -> None:
            bands, full = matrix(a, k + 1, n, kind, lda), np.zeros((n, n))
            for i in range(min(k + 1, n)):
                diagonal = bands[i, :n - i] if uplo == LOWER else bands[k - i, i:]
                full += np.diag(diagonal, -i) + (np.diag(diagonal, i) if i else 0)
            result = by() * (full @ array(x, (n,), kind, (incx,)))
            target = array(y, (n,), kind, (incy,), written=True)
            target[...] = result + plus() * target if plus() != 0 else result

        return _submit(h, run)

    def unpack(h: int, uplo: int, n: int, packed: int, a: int, lda: int) -> int:
        """One triangle of A from its columns, one after the other."""
        def run() -> None:
            target, where = matrix(a, n, n, kind, lda, written=True), _triangle(n, uplo)
            # The transpose of A has its columns as rows.
            target.T[where.T] = vector(packed, n * (n + 1) // 2, kind)

        return _INVALID if n < 0 or lda < max(1, n) else _submit(h, run)

    def pack(h: int, uplo: int, n: int, a: int, lda: int, packed: int) -> int:
        def run() -> None:
            vector(packed, n * (n + 1) // 2, kind, written=True)[...] = (
                matrix(a, n, n, kind, lda).T[_triangle(n, uplo).T])

        return _INVALID if n < 0 or lda < max(1, n) else _submit(h, run)

    library.function(f"{letter}sbmv_v2", _P, _I, _I, _I, _P, _P, _I, _P, _I, _P, _P, _I)(sbmv)
    library.function(f"{letter}tpttr", _P, _I, _I, _P, _P, _I)(unpack)
    library.function(f"{letter}trttp", _P, _I, _I, _P, _I, _P)(pack)


# ------------------------------------------------------------------ vectors


def _vectors_of(letter: str, kind: np.dtype) -> None:
    def moduli(x: int, n: int, step: int) -> np.ndarray:
        """|re| + |im|, which BLAS takes for the modulus of complex numbers."""
        values = array(x, (n,), kind, (step,))
        # As BLAS: no square root, no overflow of squares.
        return abs(values.real) + abs(values.imag)

    def asum(h: int, n: int, x: int, step: int, to: int) -> int:
        return _submit(h, lambda: put(handles[h], to, real_of(kind), moduli(x, n, step).sum(
            dtype=np.float64)))

    def extreme(choose: Callable[[np.ndarray], Any]) -> Callable[..., int]:
        def call(h: int, n: int, x: int, step: int, to: int) -> int:
            # Places count from 1; that of nothing is 0.
            return _submit(h, lambda: put(handles[h], to, np.dtype(np.int32),
                                          choose(moduli(x, n, step)) + 1 if n > 0 else 0))

        return call

    def scal(h: int, n: int, alpha: int, x: int, step: int) -> int:
        by = scalar(handles[h], alpha, real_of(kind))

        def run() -> None:
            array(x, (n,), kind, (step,), written=True)[...] *= by()

        return _submit(h, run)

    name = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    library.function(f"{name}asum_v2", _P, _I, _P, _I, _P)(asum)
    library.function(f"I{letter.lower()}amax_v2", _P, _I, _P, _I, _P)(extreme(np.argmax))
    library.function(f"I{letter.lower()}amin_v2", _P, _I, _P, _I, _P)(extreme(np.argmin))
    if kind.kind == "c":
        by_real = {"C": "Cs", "Z": "Zd"}[letter]
        library.function(f"{by_real}scal_v2", _P, _I, _P, _P, _I)(scal)


for _letter, _dtype in LETTERS.items():
    _triangular_of(_letter, _dtype)
    _lu_of(_letter, _dtype)
    _solutions_of(_letter, _dtype)
    _forms_of(_letter, _dtype)
    _scaled_of(_letter, _dtype)
    _vectors_of(_letter, _dtype)
    if _dtype.kind == "f":
        _real_forms_of(_letter, _dtype)

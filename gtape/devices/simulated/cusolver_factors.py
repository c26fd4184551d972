"""cuSOLVER's factorisations and linear systems, by LAPACK: Cholesky, LU, QR, L D L^T.

`info` is LAPACK's: 0, or the number of the minor or pivot that failed.
"""

from __future__ import annotations

import numpy as np

from gtape.devices.simulated.cusolver_base import (
    INVALID,
    LEFT,
    LETTERS,
    LOWER,
    OPERATIONS,
    SUCCESS,
    WORK,
    N,
    P,
    Z,
    each_pointer,
    fits,
    lapack,
    library,
    matrix,
    of_each,
    sized,
    submit,
    submit_and_wait,
    tell,
    vector,
)


def unpivoted(a: np.ndarray) -> tuple[np.ndarray, int]:
    """L and U of A in one matrix, without exchanges of rows, and the number of the first pivot that
    is 0, where one is."""
    a, info = a.copy(), 0
    with np.errstate(all="ignore"):
        for i in range(min(a.shape)):
            if a[i, i] == 0:
                info = info or i + 1  # the first one counts
                continue
            a[i + 1:, i] /= a[i, i]
            a[i + 1:, i + 1:] -= np.outer(a[i + 1:, i], a[i, i + 1:])
    return a, info


def lu(found: np.ndarray, pivots: np.ndarray | None) -> int:
    """Factorise where it lies: A = P L U. Pivots count from 1, as LAPACK's do."""
    if not found.size:  # SciPy's wrappers are not made for empty matrices
        return 0
    if pivots is None:
        found[...], info = unpivoted(found)
        return info
    factors, exchanged, info = lapack("getrf", found.dtype)(found)
    found[...] = factors
    pivots[...] = exchanged + 1
    return int(info)


def lu_solve(factors: np.ndarray, pivots: np.ndarray | None, b: np.ndarray, operation: int) -> None:
    """op(A) X = B, where B lies."""
    if not b.size:
        return
    exchanged = np.arange(len(factors), dtype=np.int32) if pivots is None else pivots - 1
    solved, _ = lapack("getrs", factors.dtype)(factors, exchanged, b, trans=operation)
    b[...] = solved


def _cholesky(found: np.ndarray, uplo: int) -> int:
    """A = L L^H, or U^H U; the other triangle stays as it was."""
    if not found.size:
        return 0
    factor, info = lapack("potrf", found.dtype)(found, lower=uplo == LOWER, clean=False)
    found[...] = factor
    return int(info)


def _cholesky_solve(factor: np.ndarray, uplo: int, b: np.ndarray) -> None:
    if b.size:
        b[...] = lapack("potrs", factor.dtype)(factor, b, lower=uplo == LOWER)[0]


# ------------------------------------------------------------------ Cholesky

sized("potrf", P, N, N, P, N, P)


@of_each("potrf", P, N, N, P, N, P, N, P)
def _potrf(kind: np.dtype, h: int, uplo: int, n: int, a: int, lda: int, work: int, size: int,
           info: int) -> int:
    if not fits(n, n, lda) or size < WORK:
        return INVALID
    return submit(h, lambda: tell(info, _cholesky(
        matrix(a, n, n, kind, lda, written=True), uplo)))


@of_each("potrs", P, N, N, N, P, N, P, N, P)
def _potrs(kind: np.dtype, h: int, uplo: int, n: int, nrhs: int, a: int, lda: int, b: int, ldb: int,
           info: int) -> int:
    if not (fits(n, n, lda) and fits(n, nrhs, ldb)):
        return INVALID

    def run() -> None:
        _cholesky_solve(matrix(a, n, n, kind, lda), uplo,
                        matrix(b, n, nrhs, kind, ldb, written=True))
        tell(info, 0)

    return submit(h, run)


@of_each("potrfBatched", P, N, N, P, N, P, N)
def _potrf_batched(kind: np.dtype, h: int, uplo: int, n: int, table: int, lda: int, infos: int,
                   count: int) -> int:
    if not fits(n, n, lda) or count < 0:
        return INVALID

    def run() -> None:
        told = vector(infos, count, np.int32, written=True)
        for i, address in enumerate(each_pointer(table, count)):
            told[i] = _cholesky(matrix(address, n, n, kind, lda, written=True), uplo)

    return submit(h, run)


@of_each("potrsBatched", P, N, N, N, P, N, P, N, P, N)
def _potrs_batched(kind: np.dtype, h: int, uplo: int, n: int, nrhs: int, table: int, lda: int,
                   right: int, ldb: int, info: int, count: int) -> int:
    # One right side only, as cuSOLVER's manual says.
    if not (fits(n, n, lda) and fits(n, nrhs, ldb)) or count < 0 or nrhs != 1:
        return INVALID

    def run() -> None:
        for a, b in zip(each_pointer(table, count), each_pointer(right, count)):
            _cholesky_solve(matrix(a, n, n, kind, lda), uplo,
                            matrix(b, n, nrhs, kind, ldb, written=True))
        tell(info, 0)

    return submit(h, run)


# ------------------------------------------------------------------ LU

sized("getrf", P, N, N, P, N, P)


@of_each("getrf", P, N, N, P, N, P, P, P)
def _getrf(kind: np.dtype, h: int, m: int, n: int, a: int, lda: int, work: int, pivots: int | None,
           info: int) -> int:
    if not fits(m, n, lda):
        return INVALID

    def run() -> None:
        exchanged = vector(pivots, min(m, n), np.int32, written=True) if pivots else None
        tell(info, lu(matrix(a, m, n, kind, lda, written=True), exchanged))

    return submit(h, run)


@of_each("getrs", P, N, N, N, P, N, P, P, N, P)
def _getrs(kind: np.dtype, h: int, operation: int, n: int, nrhs: int, a: int, lda: int,
           pivots: int | None, b: int, ldb: int, info: int) -> int:
    if not (fits(n, n, lda) and fits(n, nrhs, ldb)) or operation not in range(3):
        return INVALID

    def run() -> None:
        lu_solve(matrix(a, n, n, kind, lda), vector(pivots, n, np.int32) if pivots else None,
                 matrix(b, n, nrhs, kind, ldb, written=True), operation)
        tell(info, 0)

    return submit(h, run)


# ------------------------------------------------------------------ QR

sized("geqrf", P, N, N, P, N, P)
sized("orgqr", P, N, N, N, P, N, P, P, complex_name="ungqr")
sized("ormqr", P, N, N, N, N, N, P, N, P, P, N, P, complex_name="unmqr")


@of_each("geqrf", P, N, N, P, N, P, P, N, P)
def _geqrf(kind: np.dtype, h: int, m: int, n: int, a: int, lda: int, tau: int, work: int, size: int,
           info: int) -> int:
    if not fits(m, n, lda) or size < WORK:
        return INVALID

    def run() -> None:
        if min(m, n):
            found = matrix(a, m, n, kind, lda, written=True)
            factors, scales, _, _ = lapack("geqrf", kind)(found)
            found[...] = factors
            vector(tau, min(m, n), kind, written=True)[...] = scales
        tell(info, 0)

    return submit(h, run)


@of_each("orgqr", P, N, N, N, P, N, P, P, N, P, complex_name="ungqr")
def _orgqr(kind: np.dtype, h: int, m: int, n: int, k: int, a: int, lda: int, tau: int, work: int,
           size: int, info: int) -> int:
    if not fits(m, n, lda) or not 0 <= k <= n <= m or size < WORK:
        return INVALID

    def run() -> None:
        found = matrix(a, m, n, kind, lda, written=True)
        if k:
            name = "ungqr" if kind.kind == "c" else "orgqr"
            # All columns lie in A; the reflectors, in its first k.
            found[...] = lapack(name, kind)(found, vector(tau, k, kind))[0]
        else:
            found[...] = np.eye(m, n, dtype=kind)
        tell(info, 0)

    return submit(h, run)


@of_each("ormqr", P, N, N, N, N, N, P, N, P, P, N, P, N, P, complex_name="unmqr")
def _ormqr(kind: np.dtype, h: int, side: int, operation: int, m: int, n: int, k: int, a: int,
           lda: int, tau: int, c: int, ldc: int, work: int, size: int, info: int) -> int:
    rows = m if side == LEFT else n
    if not (fits(rows, k, lda) and fits(m, n, ldc)) or not 0 <= k <= rows or size < WORK:
        return INVALID

    def run() -> None:
        found = matrix(c, m, n, kind, ldc, written=True)
        if found.size and k:
            name, letter = ("unmqr", OPERATIONS[operation]) if kind.kind == "c" else (
                "ormqr", "T" if operation else "N")
            found[...] = lapack(name, kind)(
                "L" if side == LEFT else "R", letter, matrix(a, rows, k, kind, lda),
                # LAPACK's blocks have 64 columns at most.
                vector(tau, k, kind), found, 64 * max(m, n))[0]
        tell(info, 0)

    return submit(h, run)


# ------------------------------------------------------------------ L D L^T

sized("sytrf", P, N, P, N, P)


@of_each("sytrf", P, N, N, P, N, P, P, N, P)
def _sytrf(kind: np.dtype, h: int, uplo: int, n: int, a: int, lda: int, pivots: int | None,
           work: int, size: int, info: int) -> int:
    if not fits(n, n, lda) or size < WORK or not pivots:
        return INVALID

    def run() -> None:
        status = 0
        if n:
            found = matrix(a, n, n, kind, lda, written=True)
            factors, exchanged, status = lapack("sytrf", kind)(found, lower=uplo == LOWER)
            found[...] = factors
            # Signs mark blocks of 2: SciPy leaves LAPACK's counting from 1.
            vector(pivots, n, np.int32, written=True)[...] = exchanged
        tell(info, int(status))

    return submit(h, run)


# ------------------------------------------------------------------ systems, with refinement


# gesv and gels factorise in a lower precision and refine: here they compute in the precision that
# the refinement reaches, with 0 iterations.


def _workspace(*args: int) -> int:
    Z.from_address(args[-1]).value = WORK
    return SUCCESS


def _refined_solution(letter: str, lower: str) -> None:
    kind = LETTERS[letter]

    def gesv(h: int, n: int, nrhs: int, a: int, lda: int, pivots: int, b: int, ldb: int, x: int,
             ldx: int, work: int, bytes_: int, iterations: int, info: int) -> int:
        if not (fits(n, n, lda) and fits(n, nrhs, ldb) and fits(n, nrhs, ldx)) or bytes_ < WORK:
            return INVALID

        def run() -> None:
            factors = matrix(a, n, n, kind, lda, written=True)
            exchanged = vector(pivots, n, np.int32, written=True)
            status = lu(factors, exchanged)
            solution = matrix(x, n, nrhs, kind, ldx, written=True)
            solution[...] = matrix(b, n, nrhs, kind, ldb)
            lu_solve(factors, exchanged, solution, 0)
            tell(info, status)
            N.from_address(iterations).value = -status

        return submit_and_wait(h, run)

    name = f"Dn{letter}{lower}gesv"
    library.function(f"{name}_bufferSize", P, N, N, P, N, P, P, N, P, N, P, P)(_workspace)
    library.function(name, P, N, N, P, N, P, P, N, P, N, P, Z, P, P)(gesv)


def _refined_least_squares(letter: str, lower: str) -> None:
    kind = LETTERS[letter]

    def gels(h: int, m: int, n: int, nrhs: int, a: int, lda: int, b: int, ldb: int, x: int,
             ldx: int, work: int, bytes_: int, iterations: int, info: int) -> int:
        if not (fits(m, n, lda) and fits(m, nrhs, ldb) and fits(n, nrhs, ldx)) or m < n or (
                bytes_ < WORK):
            return INVALID

        def run() -> None:
            status = 0
            if n and nrhs:
                factors, solution, status = lapack("gels", kind)(
                    matrix(a, m, n, kind, lda), matrix(b, m, nrhs, kind, ldb))
                matrix(a, m, n, kind, lda, written=True)[...] = factors
                matrix(x, n, nrhs, kind, ldx, written=True)[...] = solution[:n]
            tell(info, int(status))
            N.from_address(iterations).value = -int(status)

        return submit_and_wait(h, run)

    name = f"Dn{letter}{lower}gels"
    library.function(f"{name}_bufferSize", P, N, N, N, P, N, P, N, P, N, P, P)(_workspace)
    library.function(name, P, N, N, N, P, N, P, N, P, N, P, Z, P, P)(gels)


# K, E, Y: complex numbers of half, bfloat16 and TF32; H, B, X: real ones.
for _letter, _others in (("Z", "ZCKEY"), ("C", "CKEY"), ("D", "DSHBX"), ("S", "SHBX")):
    for _other in _others:
        _refined_solution(_letter, _other)
        _refined_least_squares(_letter, _other)

"""cuSOLVER's eigenvalues and singular values, by LAPACK.

`info` is LAPACK's: 0, or more where its method did not converge.
"""

from __future__ import annotations

import ctypes

import numpy as np

from gtape.devices.simulated.cusolver_base import (
    INVALID,
    LOWER,
    NO_VECTORS,
    NOT_SUPPORTED,
    SUCCESS,
    WORK,
    L,
    N,
    P,
    Z,
    fits,
    lapack,
    library,
    matrix,
    of_each,
    real_of,
    sized,
    submit,
    submit_and_wait,
    tell,
    vector,
)
from gtape.devices.simulated.matrices import DTYPES

#: Sides of matrices that the batched Jacobi method of singular values takes.
_BATCHED_SIDE = 32  # the manual's limit


# ------------------------------------------------------------------ Hermitian matrices


def _hermitian(found: np.ndarray, values: np.ndarray, uplo: int, vectors: bool) -> int:
    """A = V diag(w) V^H with w ascending; V takes the place of A."""
    if not found.size:
        return 0
    name = "heevd" if found.dtype.kind == "c" else "syevd"
    w, v, info = lapack(name, found.dtype)(found, compute_v=vectors, lower=uplo == LOWER)
    values[...] = w
    if vectors:
        found[...] = v
    return int(info)


def _submit_hermitian(h: int, jobz: int, uplo: int, n: int, kind: np.dtype, a: int, lda: int,
                      w: int, info: int, count: int = 1) -> int:
    if not fits(n, n, lda) or count < 0:
        return INVALID

    def run() -> None:
        real, told = real_of(kind), vector(info, count, np.int32, written=True)
        for i in range(count):
            told[i] = _hermitian(
                matrix(a + i * lda * n * kind.itemsize, n, n, kind, lda, written=True),
                vector(w + i * n * real.itemsize, n, real, written=True), uplo,
                jobz != NO_VECTORS)

    return submit(h, run)


sized("syevd", P, N, N, N, P, N, P, P, complex_name="heevd")
sized("syevj", P, N, N, N, P, N, P, P, P, at=-2, complex_name="heevj")
sized("syevjBatched", P, N, N, N, P, N, P, P, P, N, at=-3, complex_name="heevjBatched")


@of_each("syevd", P, N, N, N, P, N, P, P, N, P, complex_name="heevd")
def _syevd(kind: np.dtype, h: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
           work: int, size: int, info: int) -> int:
    if size < WORK:
        return INVALID
    return _submit_hermitian(h, jobz, uplo, n, kind, a, lda, w, info)


@of_each("syevj", P, N, N, N, P, N, P, P, N, P, P, complex_name="heevj")
def _syevj(kind: np.dtype, h: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
           work: int, size: int, info: int, settings: int) -> int:
    if size < WORK:
        return INVALID
    return _submit_hermitian(h, jobz, uplo, n, kind, a, lda, w, info)


@of_each("syevjBatched", P, N, N, N, P, N, P, P, N, P, P, N, complex_name="heevjBatched")
def _syevj_batched(kind: np.dtype, h: int, jobz: int, uplo: int, n: int, a: int, lda: int, w: int,
                   work: int, size: int, info: int, settings: int, count: int) -> int:
    if size < WORK:
        return INVALID
    return _submit_hermitian(h, jobz, uplo, n, kind, a, lda, w, info, count)


@library.function("DnXsyevd_bufferSize", P, P, N, N, L, N, P, L, N, P, N, P, P)
def _x_syevd_size(h: int, params: int, jobz: int, uplo: int, n: int, type_a: int, a: int, lda: int,
                  type_w: int, w: int, compute: int, device: int, host: int) -> int:
    Z.from_address(device).value = WORK
    Z.from_address(host).value = 0
    return SUCCESS


@library.function("DnXsyevd", P, P, N, N, L, N, P, L, N, P, N, P, Z, P, Z, P)
def _x_syevd(h: int, params: int, jobz: int, uplo: int, n: int, type_a: int, a: int, lda: int,
             type_w: int, w: int, compute: int, work: int, size: int, host: int, host_size: int,
             info: int) -> int:
    kind = DTYPES.get(type_a)
    if kind is None or type_a != compute or kind.kind not in "fc" or kind.itemsize < 4:
        return NOT_SUPPORTED
    if DTYPES.get(type_w) != real_of(kind) or size < WORK:
        return INVALID
    return _submit_hermitian(h, jobz, uplo, n, kind, a, lda, w, info)


# ------------------------------------------------------------------ general matrices


@library.function("DnXgeev_bufferSize", P, P, N, N, L, N, P, L, N, P, N, P, L, N, P, L, N, P, P)
def _x_geev_size(*args: int) -> int:
    Z.from_address(args[-2]).value = WORK
    Z.from_address(args[-1]).value = 0
    return SUCCESS


@library.function("DnXgeev", P, P, N, N, L, N, P, L, N, P, N, P, L, N, P, L, N, P, Z, P, Z, P)
def _x_geev(h: int, params: int, jobvl: int, jobvr: int, n: int, type_a: int, a: int, lda: int,
            type_w: int, w: int, type_vl: int, vl: int, ldvl: int, type_vr: int, vr: int, ldvr: int,
            compute: int, work: int, size: int, host: int, host_size: int, info: int) -> int:
    """A V = V diag(w). Of a real matrix, V is real as well: the columns of a conjugate pair are the
    real and the imaginary part of the one whose eigenvalue's imaginary part is positive."""
    kind, values = DTYPES.get(type_a), DTYPES.get(type_w)
    if kind is None or values is None or jobvl != NO_VECTORS or type_a != compute or (
            kind.kind not in "fc" or kind.itemsize < 4 or values.kind != "c"
            or real_of(values) != real_of(kind)):
        return NOT_SUPPORTED
    if not fits(n, n, lda) or (jobvr != NO_VECTORS and not fits(n, n, ldvr)) or size < WORK:
        return INVALID

    def run() -> None:
        status = 0
        if n:
            *found, _, v, status = lapack("geev", kind)(
                matrix(a, n, n, kind, lda), compute_vl=0, compute_vr=jobvr != NO_VECTORS)
            # For real matrices LAPACK gives real and imaginary parts apart.
            vector(w, n, values, written=True)[...] = (
                found[0] if len(found) == 1 else found[0] + 1j * found[1])
            if jobvr != NO_VECTORS:
                matrix(vr, n, n, kind, ldvr, written=True)[...] = v
        tell(info, int(status))

    return submit(h, run)


# ------------------------------------------------------------------ singular values


def _decomposition(a: np.ndarray, vectors: bool, full: bool,
                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """U, the singular values descending, V^H and LAPACK's info: A = U diag(s) V^H."""
    u, s, vh, info = lapack("gesdd", a.dtype)(a, compute_uv=vectors, full_matrices=full)
    return u, s, vh, int(info)


sized("gesvd", P, N, N, P)


@of_each("gesvd", P, ctypes.c_byte, ctypes.c_byte, N, N, P, N, P, P, N, P, N, P, N, P, P)
def _gesvd(kind: np.dtype, h: int, job_u: int, job_vt: int, m: int, n: int, a: int, lda: int,
           s: int, u: int, ldu: int, vt: int, ldvt: int, work: int, size: int, rwork: int | None,
           info: int) -> int:
    """Jobs: A all of U or V^H, S its first min(m, n) vectors, O those in the place of A, N none."""
    jobs = chr(job_u), chr(job_vt)
    # cuSOLVER wants m >= n here: CuPy transposes the others.
    if not fits(m, n, lda) or m < n or size < WORK or jobs == ("O", "O") or (
            not set(jobs) <= set("ASON")):
        return INVALID
    if (jobs[0] in "AS" and ldu < m) or (jobs[1] in "AS" and ldvt < n):
        return INVALID

    def run() -> None:
        status = 0
        if n:
            left, values, right, status = _decomposition(
                matrix(a, m, n, kind, lda), jobs != ("N", "N"), "A" in jobs)
            vector(s, n, real_of(kind), written=True)[...] = values
            if jobs[0] in "AS":
                columns = m if jobs[0] == "A" else n
                matrix(u, m, columns, kind, ldu, written=True)[...] = left[:, :columns]
            if jobs[1] in "AS":
                matrix(vt, n, n, kind, ldvt, written=True)[...] = right
            if jobs[0] == "O":
                matrix(a, m, n, kind, lda, written=True)[...] = left[:, :n]
            if jobs[1] == "O":
                matrix(a, n, n, kind, lda, written=True)[...] = right
        tell(info, status)

    return submit(h, run)


def _put_vectors(found: np.ndarray, s: int, u: int, ldu: int, v: int, ldv: int, vectors: bool,
                 columns_u: int, columns_v: int) -> int:
    """The decomposition with V in place of V^H, of which so many columns are wanted."""
    (m, n), kind = found.shape, found.dtype
    left, values, right, status = _decomposition(found, vectors, max(columns_u, columns_v) > min(
        m, n))
    vector(s, min(m, n), real_of(kind), written=True)[...] = values
    if vectors:
        matrix(u, m, columns_u, kind, ldu, written=True)[...] = left[:, :columns_u]
        matrix(v, n, columns_v, kind, ldv, written=True)[...] = right[:columns_v].conj().T
    return status


sized("gesvdj", P, N, N, N, N, P, N, P, P, N, P, N, P, P, at=-2)
sized("gesvdjBatched", P, N, N, N, P, N, P, P, N, P, N, P, P, N, at=-3)
sized("gesvdaStridedBatched", P, N, N, N, N, P, N, L, P, L, P, N, L, P, N, L, P, N, at=-2)


@of_each("gesvdj", P, N, N, N, N, P, N, P, P, N, P, N, P, N, P, P)
def _gesvdj(kind: np.dtype, h: int, jobz: int, econ: int, m: int, n: int, a: int, lda: int, s: int,
            u: int, ldu: int, v: int, ldv: int, work: int, size: int, info: int,
            settings: int) -> int:
    if not fits(m, n, lda) or size < WORK or (jobz and (ldu < m or ldv < n)):
        return INVALID

    def run() -> None:
        status = 0
        if min(m, n):
            columns = (min(m, n),) * 2 if econ else (m, n)
            status = _put_vectors(matrix(a, m, n, kind, lda), s, u, ldu, v, ldv,
                                  jobz != NO_VECTORS, *columns)
        tell(info, status)

    return submit(h, run)


@of_each("gesvdjBatched", P, N, N, N, P, N, P, P, N, P, N, P, N, P, P, N)
def _gesvdj_batched(kind: np.dtype, h: int, jobz: int, m: int, n: int, a: int, lda: int, s: int,
                    u: int, ldu: int, v: int, ldv: int, work: int, size: int, info: int,
                    settings: int, count: int) -> int:
    if not fits(m, n, lda) or size < WORK or (jobz and (ldu < m or ldv < n)) or (
            max(m, n) > _BATCHED_SIDE):
        return INVALID

    def run() -> None:
        told = vector(info, count, np.int32, written=True)
        for i in range(count if min(m, n) else 0):
            told[i] = _put_vectors(
                matrix(a + i * lda * n * kind.itemsize, m, n, kind, lda),
                s + i * min(m, n) * real_of(kind).itemsize, u + i * ldu * m * kind.itemsize, ldu,
                v + i * ldv * n * kind.itemsize, ldv, jobz != NO_VECTORS, m, n)

    return submit(h, run)


@of_each("gesvdaStridedBatched", P, N, N, N, N, P, N, L, P, L, P, N, L, P, N, L, P, N, P, P, N)
def _gesvda(kind: np.dtype, h: int, jobz: int, rank: int, m: int, n: int, a: int, lda: int,
            step_a: int, s: int, step_s: int, u: int, ldu: int, step_u: int, v: int, ldv: int,
            step_v: int, work: int, size: int, info: int, residuals: int | None,
            count: int) -> int:
    """The `rank` largest singular values; residuals, in memory of the host: |A - U diag(s) V^H|."""
    if not fits(m, n, lda) or m < n or not 0 < rank <= n or size < WORK:
        return INVALID

    def run() -> None:
        told = vector(info, count, np.int32, written=True)
        for i in range(count):
            found = matrix(a + i * step_a * kind.itemsize, m, n, kind, lda)
            left, values, right, told[i] = _decomposition(found, True, False)
            left, values, right = left[:, :rank], values[:rank], right[:rank]
            vector(s + i * step_s * real_of(kind).itemsize, rank, real_of(kind),
                   written=True)[...] = values
            if jobz != NO_VECTORS:
                matrix(u + i * step_u * kind.itemsize, m, rank, kind, ldu,
                       written=True)[...] = left
                matrix(v + i * step_v * kind.itemsize, n, rank, kind, ldv,
                       written=True)[...] = right.conj().T
            if residuals:
                ctypes.c_double.from_address(residuals + 8 * i).value = float(
                    np.linalg.norm(found - left * values @ right))

    return submit_and_wait(h, run) if residuals else submit(h, run)

"""cuBLAS by NumPy: products of matrices, which lie column by column."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.devices.simulated import cublaslt
from gtape.devices.simulated.device_arrays import array, host_array, later
from gtape.devices.simulated.matrices import DTYPES, ColumnMajor, product
from gtape.devices.simulated.stand_ins import Handles, StandIn

_SUCCESS, _INVALID, _FAILED, _NOT_SUPPORTED = 0, 7, 13, 15  # cublasStatus_t in cublas_api.h
LETTERS: dict[str, np.dtype] = {
    "S": np.dtype(np.float32), "D": np.dtype(np.float64), "C": np.dtype(np.complex64),
    "Z": np.dtype(np.complex128)}
#: The matrices A, B and C of a product.
Factors = tuple[ColumnMajor, ColumnMajor, ColumnMajor]
_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong

library = StandIn("libcublas.so.13", "cublas", _NOT_SUPPORTED, _FAILED)
LIBRARIES = (library, cublaslt.library)


class Handle:
    """What cublasCreate makes."""

    def __init__(self) -> None:
        self.stream: int | None = None
        self.math_mode = self.pointer_mode = 0


handles: Handles[Handle] = Handles()


def scalar(handle: Handle, address: int, dtype: np.dtype) -> Callable[[], Any]:
    """alpha or beta: read now from the host, or when the operation runs from the device."""
    if handle.pointer_mode:
        # A kernel before it in the stream may write it.
        return lambda: array(address, (), dtype)[()]
    value = host_array(address, (), dtype)[()]  # the caller may reuse it once the call is back
    return lambda: value


def _fits(m: int, n: int, k: int, a: ColumnMajor, b: ColumnMajor, c: ColumnMajor) -> bool:
    """Whether the leading dimensions hold the rows."""
    rows_a, rows_b = (k if a.transposed else m), (n if b.transposed else k)
    return min(m, n, k) >= 0 and a.ld >= max(1, rows_a) and b.ld >= max(1, rows_b) and (
        c.ld >= max(1, m))


def _gemm(handle: int, m: int, n: int, k: int, alpha: int, beta: int, scale: np.dtype,
          triples: Callable[[], Sequence[Factors]], first: Factors) -> int:
    owner = handles[handle]
    if not _fits(m, n, k, *first):
        return _INVALID
    by, plus = scalar(owner, alpha, scale), scalar(owner, beta, scale)

    def run() -> None:
        for a, b, c in triples():
            product(a, b, c, m, n, k, by(), plus())

    return _FAILED if later(owner.stream, run) else _SUCCESS


def _strided(first: Factors, steps: tuple[int, int, int], count: int,
             ) -> list[Factors]:
    return [_moved(first, [i * step * x.dtype.itemsize for x, step in zip(first, steps)])
            for i in range(count)]


def _moved(first: Factors, by: Sequence[int]) -> Factors:
    """The same matrices at other addresses."""
    a, b, c = (x._replace(address=(x.address or 0) + offset) for x, offset in zip(first, by))
    return a, b, c


# ------------------------------------------------------------------ handles


@library.function("Create_v2", _P)
def _create(to: int) -> int:
    handles.add(Handle(), to)
    return _SUCCESS


@library.function("Destroy_v2", _P)
def _destroy(handle: int) -> int:
    handles.pop(handle, None)
    return _SUCCESS


@library.function("GetVersion_v2", _P, _P)
def _version(handle: int, to: int) -> int:
    _I.from_address(to).value = 130000  # 13.0.0, as the soname says
    return _SUCCESS


@library.function("SetStream_v2", _P, _P)
def _set_stream(handle: int, stream: int | None) -> int:
    handles[handle].stream = stream
    return _SUCCESS


@library.function("GetStream_v2", _P, _P)
def _get_stream(handle: int, to: int) -> int:
    _P.from_address(to).value = handles[handle].stream
    return _SUCCESS


@library.function("SetWorkspace_v2", _P, _P, ctypes.c_size_t)
def _set_workspace(handle: int, address: int, size: int) -> int:
    return _SUCCESS  # and left alone: NumPy has memory of its own


def _mode(name: str, attribute: str) -> None:
    def put(handle: int, mode: int) -> int:
        setattr(handles[handle], attribute, mode)
        return _SUCCESS

    def get(handle: int, to: int) -> int:
        _I.from_address(to).value = getattr(handles[handle], attribute)
        return _SUCCESS

    # The math mode is younger than the _v2 interface: it has one symbol only.
    suffix = "_v2" if name == "PointerMode" else ""
    library.function(f"Set{name}{suffix}", _P, _I)(put)
    library.function(f"Get{name}{suffix}", _P, _P)(get)


_mode("MathMode", "math_mode")
_mode("PointerMode", "pointer_mode")


# ------------------------------------------------------------------ products of one dtype


def _gemms(letter: str, kind: np.dtype) -> None:
    def factors(a: int, lda: int, ta: int, b: int, ldb: int, tb: int, c: int, ldc: int) -> Factors:
        return (ColumnMajor(a, kind, lda, ta), ColumnMajor(b, kind, ldb, tb),
                ColumnMajor(c, kind, ldc))

    def gemm(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, lda: int, b: int,
             ldb: int, beta: int, c: int, ldc: int) -> int:
        first = factors(a, lda, ta, b, ldb, tb, c, ldc)
        return _gemm(h, m, n, k, alpha, beta, kind, lambda: [first], first)

    def strided(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, lda: int,
                sa: int, b: int, ldb: int, sb: int, beta: int, c: int, ldc: int, sc: int,
                count: int) -> int:
        first = factors(a, lda, ta, b, ldb, tb, c, ldc)
        return _gemm(h, m, n, k, alpha, beta, kind,
                     lambda: _strided(first, (sa, sb, sc), count), first)

    def batched(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, lda: int,
                b: int, ldb: int, beta: int, c: int, ldc: int, count: int) -> int:
        first = factors(0, lda, ta, 0, ldb, tb, 0, ldc)

        def triples() -> list[Factors]:
            # Now, in the stream: the tables of addresses are device memory too.
            places = [array(table, (count,), np.int64) for table in (a, b, c)]
            return [_moved(first, [int(at[i]) for at in places]) for i in range(count)]

        return _gemm(h, m, n, k, alpha, beta, kind, triples, first)

    five = [_P, _I, _I, _I, _I, _I]
    library.function(f"{letter}gemm_v2", *five, _P, _P, _I, _P, _I, _P, _P, _I)(gemm)
    library.function(f"{letter}gemmStridedBatched", *five, _P, _P, _I, _L, _P, _I, _L, _P, _P,
                     _I, _L, _I)(strided)
    library.function(f"{letter}gemmBatched", *five, _P, _P, _I, _P, _I, _P, _P, _I,
                     _I)(batched)


def _matrices_and_vectors(letter: str, kind: np.dtype) -> None:
    def gemv(h: int, t: int, m: int, n: int, alpha: int, a: int, lda: int, x: int, incx: int,
             beta: int, y: int, incy: int) -> int:
        owner = handles[h]
        rows, columns = (n, m) if t else (m, n)
        by, plus = scalar(owner, alpha, kind), scalar(owner, beta, kind)

        def run() -> None:
            matrix = ColumnMajor(a, kind, lda, t).read(rows, columns)
            # cuBLAS does not read y where beta is 0: it may hold NaN.
            result = by() * (matrix @ array(x, (columns,), kind, (incx,)))
            if plus() != 0:
                result = result + plus() * array(y, (rows,), kind, (incy,))
            array(y, (rows,), kind, (incy,), written=True)[...] = result

        return _FAILED if later(owner.stream, run) else _SUCCESS

    def ger(conjugated: bool) -> Callable[..., int]:
        def call(h: int, m: int, n: int, alpha: int, x: int, incx: int, y: int, incy: int, a: int,
                 lda: int) -> int:
            owner = handles[h]
            by = scalar(owner, alpha, kind)

            def run() -> None:
                columns = array(y, (n,), kind, (incy,))
                matrix = array(a, (m, n), kind, (1, lda), written=True)
                matrix += by() * np.outer(array(x, (m,), kind, (incx,)),
                                          columns.conj() if conjugated else columns)

            return _FAILED if later(owner.stream, run) else _SUCCESS

        return call

    library.function(f"{letter}gemv_v2", _P, _I, _I, _I, _P, _P, _I, _P, _I, _P, _P, _I)(gemv)
    for name in ("ger",) if kind.kind == "f" else ("geru", "gerc"):
        library.function(f"{letter}{name}_v2", _P, _I, _I, _P, _P, _I, _P, _I, _P, _I)(
            ger(name == "gerc"))


def _sums(letter: str, kind: np.dtype) -> None:
    def geam(h: int, ta: int, tb: int, m: int, n: int, alpha: int, a: int, lda: int, beta: int,
             b: int, ldb: int, c: int, ldc: int) -> int:
        owner = handles[h]
        by, plus = scalar(owner, alpha, kind), scalar(owner, beta, kind)

        def run() -> None:
            result = np.zeros((m, n), kind)
            for factor, matrix in ((by(), ColumnMajor(a, kind, lda, ta)),
                                   (plus(), ColumnMajor(b, kind, ldb, tb))):
                if factor != 0:  # else the matrix may be anything, none at all too
                    result = result + factor * matrix.read(m, n)
            array(c, (m, n), kind, (1, ldc), written=True)[...] = result

        return _FAILED if later(owner.stream, run) else _SUCCESS

    library.function(f"{letter}geam", _P, _I, _I, _I, _I, _P, _P, _I, _P, _P, _I, _P, _I)(geam)


def _products_of_vectors(letter: str, kind: np.dtype) -> None:
    def dot(conjugated: bool) -> Callable[..., int]:
        def call(h: int, n: int, x: int, incx: int, y: int, incy: int, to: int) -> int:
            owner = handles[h]

            def run() -> None:
                left = array(x, (n,), kind, (incx,))
                # In float64: no order of sums in float32 would be a GPU's.
                value = np.sum((left.conj() if conjugated else left).astype(
                    np.result_type(kind, np.float64)) * array(y, (n,), kind, (incy,)))
                put(owner, to, kind, value)

            return _FAILED if later(owner.stream, run) else _SUCCESS

        return call

    def nrm2(h: int, n: int, x: int, incx: int, to: int) -> int:
        owner = handles[h]

        def run() -> None:
            values = array(x, (n,), kind, (incx,))
            real = np.zeros((), kind).real.dtype
            put(owner, to, real, np.linalg.norm(values.astype(np.result_type(kind, np.float64))))

        return _FAILED if later(owner.stream, run) else _SUCCESS

    vectors = (_P, _I, _P, _I, _P, _I, _P)
    if kind.kind == "f":
        library.function(f"{letter}dot_v2", *vectors)(dot(False))
    else:
        library.function(f"{letter}dotu_v2", *vectors)(dot(False))
        library.function(f"{letter}dotc_v2", *vectors)(dot(True))
    # BLAS names the result first, which is real.
    norm = {"C": "Scnrm2_v2", "Z": "Dznrm2_v2"}.get(letter, f"{letter}nrm2_v2")
    library.function(norm, _P, _I, _P, _I, _P)(nrm2)


def _multiples_of_vectors(letter: str, kind: np.dtype) -> None:
    def scal(h: int, n: int, alpha: int, x: int, incx: int) -> int:
        owner = handles[h]
        by = scalar(owner, alpha, kind)

        def run() -> None:
            array(x, (n,), kind, (incx,), written=True)[...] *= by()

        return _FAILED if later(owner.stream, run) else _SUCCESS

    def axpy(h: int, n: int, alpha: int, x: int, incx: int, y: int, incy: int) -> int:
        owner = handles[h]
        by = scalar(owner, alpha, kind)

        def run() -> None:
            array(y, (n,), kind, (incy,), written=True)[...] += by() * array(x, (n,), kind, (incx,))

        return _FAILED if later(owner.stream, run) else _SUCCESS

    library.function(f"{letter}scal_v2", _P, _I, _P, _P, _I)(scal)
    library.function(f"{letter}axpy_v2", _P, _I, _P, _P, _I, _P, _I)(axpy)


def put(owner: Handle, to: int, kind: np.dtype, value: Any) -> None:
    """A number into the host's or the device's memory, as the handle says."""
    place = (array(to, (), kind, written=True) if owner.pointer_mode
             else host_array(to, (), kind))
    place[...] = value


for _letter, _dtype in LETTERS.items():
    for _define in (_gemms, _matrices_and_vectors, _sums, _products_of_vectors,
                    _multiples_of_vectors):
        _define(_letter, _dtype)


# ------------------------------------------------------------------ products of several dtypes


def scale_dtype(compute: int, c: np.dtype) -> np.dtype:
    """The dtype of alpha and beta: that of the sums; complex where C is."""
    if compute in (64, 65):  # CUBLAS_COMPUTE_16F
        return np.dtype(np.float16)
    if compute in (72, 73):  # CUBLAS_COMPUTE_32I
        return np.dtype(np.int32)
    wide = compute in (70, 71)  # CUBLAS_COMPUTE_64F
    if c.kind == "c":
        return np.dtype(np.complex128 if wide else np.complex64)
    return np.dtype(np.float64 if wide else np.float32)


@library.function("SgemmEx", _P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _P, _I, _I, _P, _P, _I, _I)
def _sgemm_ex(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, type_a: int,
              lda: int, b: int, type_b: int, ldb: int, beta: int, c: int, type_c: int,
              ldc: int) -> int:
    first = (ColumnMajor(a, DTYPES[type_a], lda, ta), ColumnMajor(b, DTYPES[type_b], ldb, tb),
             ColumnMajor(c, DTYPES[type_c], ldc))
    return _gemm(h, m, n, k, alpha, beta, np.dtype(np.float32), lambda: [first], first)


@library.function("GemmEx", _P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _P, _I, _I, _P, _P, _I, _I, _I,
                  _I)
def _gemm_ex(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int, type_a: int,
             lda: int, b: int, type_b: int, ldb: int, beta: int, c: int, type_c: int, ldc: int,
             compute: int, algorithm: int) -> int:
    first = (ColumnMajor(a, DTYPES[type_a], lda, ta), ColumnMajor(b, DTYPES[type_b], ldb, tb),
             ColumnMajor(c, DTYPES[type_c], ldc))
    scale = scale_dtype(compute, DTYPES[type_c])
    return _gemm(h, m, n, k, alpha, beta, scale, lambda: [first], first)


@library.function("GemmStridedBatchedEx", _P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _L, _P, _I, _I,
                  _L, _P, _P, _I, _I, _L, _I, _I, _I)
def _gemm_strided_ex(h: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, a: int,
                     type_a: int, lda: int, sa: int, b: int, type_b: int, ldb: int, sb: int,
                     beta: int, c: int, type_c: int, ldc: int, sc: int, count: int, compute: int,
                     algorithm: int) -> int:
    first = (ColumnMajor(a, DTYPES[type_a], lda, ta), ColumnMajor(b, DTYPES[type_b], ldb, tb),
             ColumnMajor(c, DTYPES[type_c], ldc))
    return _gemm(h, m, n, k, alpha, beta, scale_dtype(compute, DTYPES[type_c]),
                 lambda: _strided(first, (sa, sb, sc), count), first)

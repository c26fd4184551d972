"""Matrices as cuBLAS and cuBLASLt are told of them, column by column, and their product."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.devices.simulated.device_arrays import array

#: NVIDIA's numbers of cudaDataType.
DTYPES: dict[int, np.dtype] = {
    0: np.dtype(np.float32), 1: np.dtype(np.float64), 2: np.dtype(np.float16),
    3: np.dtype(np.int8), 4: np.dtype(np.complex64), 5: np.dtype(np.complex128),
    8: np.dtype(np.uint8), 10: np.dtype(np.int32),
    14: np.dtype(dtypes.as_dtype("bfloat16").as_numpy_dtype)}


class ColumnMajor(NamedTuple):
    """A matrix as cuBLAS is told of it: address, dtype, leading dimension, and whether it is taken
    as it lies (0), transposed (1) or conjugated and transposed (2)."""

    address: int
    dtype: np.dtype
    ld: int
    transposed: int = 0

    def read(self, rows: int, columns: int) -> np.ndarray:
        """op(A) of `rows` and `columns`, in the dtype that products are summed in."""
        if self.transposed:
            rows, columns = columns, rows
        found = array(self.address, (rows, columns), self.dtype, (1, self.ld))
        # NumPy would sum halves in halves, and integers would wrap around.
        found = found.astype(np.result_type(found.dtype, np.float64), copy=False) if (
            self.dtype.kind not in "fc" or self.dtype.itemsize < 4) else found
        return found if not self.transposed else (
            found.T.conj() if self.transposed == 2 else found.T)


def product(a: ColumnMajor, b: ColumnMajor, c: ColumnMajor, m: int, n: int, k: int, alpha: Any,
            beta: Any) -> None:
    """C = alpha op(A) op(B) + beta C, with sums in float64 or complex128.

    C is not read where beta is 0: it may hold anything.
    """
    wide = np.complex128 if c.dtype.kind == "c" else np.float64
    result = alpha * (a.read(m, k).astype(wide) @ b.read(k, n).astype(wide))
    if beta != 0:
        result = result + beta * array(c.address, (m, n), c.dtype, (1, c.ld)).astype(wide)
    with np.errstate(all="ignore"):  # too large for C is inf on a GPU, no warning
        array(c.address, (m, n), c.dtype, (1, c.ld), written=True)[...] = result.astype(c.dtype)

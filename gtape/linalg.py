"""gtape.linalg: linear algebra on matrices in the last two axes, batches before them."""

from __future__ import annotations

from typing import Any

from gtape.ops.linalg.contraction import einsum, tensordot
from gtape.ops.linalg.determinants import det, logdet, matrix_rank, slogdet, trace
from gtape.ops.linalg.diagonals import (
    adjoint,
    band_part,
    cross,
    diag,
    diag_part,
    set_diag,
    tensor_diag,
    tensor_diag_part,
)
from gtape.ops.linalg.eigen import eig, eigh, eigvals, eigvalsh, qr, svd
from gtape.ops.linalg.lu import lu, lu_matrix_inverse, lu_reconstruct, lu_solve
from gtape.ops.linalg.matrix_functions import expm, logm, sqrtm
from gtape.ops.linalg.norms import global_norm, l2_normalize, norm, normalize
from gtape.ops.linalg.products import matmul, matrix_transpose, matvec
from gtape.ops.linalg.solving import (
    banded_triangular_solve,
    cholesky,
    cholesky_solve,
    inv,
    lstsq,
    pinv,
    solve,
    triangular_solve,
)
from gtape.ops.linalg.tridiagonal import eigh_tridiagonal, tridiagonal_matmul, tridiagonal_solve
from gtape.ops.shape.creation import eye

__all__ = [
    "adjoint", "band_part", "banded_triangular_solve", "cholesky", "cholesky_solve", "cross",
    "det", "diag", "diag_part", "eig", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh",
    "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet", "logm", "lstsq",
    "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matmul", "matrix_rank",
    "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag", "slogdet",
    "solve", "sqrtm", "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace",
    "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve"]


def __getattr__(name: str) -> Any:
    from gtape._names import missing

    raise AttributeError(missing("gtape.linalg", name, __all__))

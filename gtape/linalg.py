"""gtape.linalg: linear algebra on matrices in the last two axes, batches before them."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.linalg.contraction": "einsum tensordot",
    "gtape.ops.linalg.matrix_functions": "det expm logdet logm matrix_rank slogdet sqrtm trace",
    "gtape.ops.linalg.diagonals": """
        adjoint band_part cross diag diag_part set_diag tensor_diag tensor_diag_part""",
    "gtape.ops.linalg.eigen": "eig eigh eigvals eigvalsh qr svd",
    "gtape.ops.linalg.systems": """
        eigh_tridiagonal lstsq lu lu_matrix_inverse lu_reconstruct lu_solve pinv
        tridiagonal_matmul tridiagonal_solve""",
    "gtape.ops.linalg.norms": "global_norm l2_normalize norm normalize",
    "gtape.ops.linalg.products": "matmul matrix_transpose matvec",
    "gtape.ops.linalg.solving": """
        banded_triangular_solve cholesky cholesky_solve inv solve triangular_solve""",
    "gtape.ops.shape.creation": "eye",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)

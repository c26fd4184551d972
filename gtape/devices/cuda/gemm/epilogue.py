"""The arrays that belong to an epilogue, and cuBLASLt's limits on them.

Limits (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD): relu's mask has one bit for each element,
rows a multiple of 128 bits apart; gelu's input has rows a multiple of 8 elements apart. Both begin
at a multiple of 16 bytes. What writes or reads more than one bias must be a single matrix.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from gtape.core.errors import InvalidArgumentError
from gtape.devices.cuda.gemm.blaslt_enums import Epilogue
from gtape.devices.cuda.gemm.problem import Problem
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import address

if TYPE_CHECKING:
    import numpy as np

_MASK_BITS = 128
_GELU_ELEMENTS = 8


def auxiliary(gpu: Executor, epilogue: Epilogue, rows: int, columns: int, dtype: np.dtype) -> Any:
    """Memory for what `epilogue` saves of a result [rows, columns]: relu's mask, whose bits only
    DRELU can read, as uint8 [rows, bytes]; gelu's input, as `dtype` [rows, columns or more]."""
    if epilogue.has_mask:
        return gpu.empty((rows, -(-columns // _MASK_BITS) * (_MASK_BITS // 8)), "uint8")
    return gpu.empty((rows, -(-columns // _GELU_ELEMENTS) * _GELU_ELEMENTS), dtype)


def extras(problem: Problem, epilogue: Epilogue, dtype: np.dtype, bias: object, aux: Any,
           ) -> tuple[int, int, int] | None:
    """The addresses of bias and aux, and the distance of aux's rows; None beyond the limits.

    Raises:
        InvalidArgumentError: one is missing, or not wanted, or has another shape or dtype than
            the epilogue needs.
    """
    rows, columns = prod(problem.shape[:-1]), problem.shape[-1]
    _check_bias(epilogue, rows if epilogue is Epilogue.BGRADB else columns, dtype, bias)
    if epilogue.has_aux != (aux is not None):
        raise InvalidArgumentError(f"matmul: the epilogue {epilogue.name} takes "
                                   f"{'an' if epilogue.has_aux else 'no'} aux")
    single = problem.geometry is None or (
        problem.geometry.batch[0] == 1 and len(problem.geometry.offsets) == 1)
    if (epilogue.has_aux or epilogue.has_bias_gradient) and not single:
        return None
    at = 0 if bias is None else address(bias)
    if aux is None:
        return at, 0, 0
    bits = 8 if epilogue.has_mask else 1
    step = _MASK_BITS if epilogue.has_mask else _GELU_ELEMENTS
    wanted = "uint8" if epilogue.has_mask else dtype
    if (aux.dtype != wanted or aux.ndim != 2 or aux.shape[0] != rows
            or aux.shape[1] * bits < columns or not aux.flags.c_contiguous):
        raise InvalidArgumentError(
            f"matmul: aux of {epilogue.name} must be a contiguous {wanted} array of {rows} rows "
            f"for {columns} columns, as epilogue.auxiliary makes it; got {aux.dtype} "
            f"{list(aux.shape)}")
    ld = aux.shape[1] * bits
    if ld % step or address(aux) % 16:
        return None
    return at, address(aux), ld


def _check_bias(epilogue: Epilogue, length: int, dtype: np.dtype, bias: Any) -> None:
    if epilogue.has_bias != (bias is not None):
        raise InvalidArgumentError(f"matmul: the epilogue {epilogue.name} takes "
                                   f"{'a' if epilogue.has_bias else 'no'} bias")
    if bias is not None and (bias.shape != (length,) or bias.dtype != dtype
                             or not bias.flags.c_contiguous):
        raise InvalidArgumentError(
            f"matmul: the bias of {epilogue.name} must be a contiguous {dtype} array [{length}]; "
            f"got {bias.dtype} {list(bias.shape)}")

"""Numbers of the cuBLASLt interface that gtape uses: enums, attributes with their types, structs.

They are those of cublasLt.h, cublas_api.h and library_types.h of the CUDA toolkits 12 and 13, under
the names of the headers without their prefixes.
"""

from __future__ import annotations

from ctypes import (
    Structure,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
)
from ctypes import c_void_p as c_pointer
from enum import IntEnum
from typing import Any, NamedTuple

#: An attribute's number and the C type of its value.
Attribute = tuple[int, Any]


class Status(IntEnum):
    """cublasStatus_t: what a call returns."""

    SUCCESS = 0
    NOT_INITIALIZED = 1
    ALLOC_FAILED = 3
    INVALID_VALUE = 7
    ARCH_MISMATCH = 8
    NOT_SUPPORTED = 15
    LICENSE_ERROR = 16


class DataType(IntEnum):
    """cudaDataType_t: the type of a matrix, and of alpha and beta."""

    R_32F = 0
    R_64F = 1
    R_16F = 2
    R_16BF = 14


class Compute(IntEnum):
    """cublasComputeType_t: the type of products and sums. `F32_FAST_TF32` may round the factors
    to TF32."""

    F32 = 68
    F64 = 70
    F32_FAST_TF32 = 77


class Operation(IntEnum):
    """cublasOperation_t: a matrix as it is, or transposed."""

    N = 0
    T = 1


class ReductionScheme(IntEnum):
    """cublasLtReductionScheme_t: how parts of a split sum are added; bits of a mask."""

    COMPUTE_TYPE = 2
    MASK = 7


class Epilogue(IntEnum):
    """cublasLtEpilogue_t: what is done to αAB + βC before it is stored. GELU is its tanh form."""

    DEFAULT = 1
    RELU = 2
    BIAS = 4
    RELU_BIAS = 2 | 4
    RELU_AUX = 2 | 128
    RELU_AUX_BIAS = 2 | 128 | 4
    DRELU = 8 | 128
    DRELU_BGRAD = 8 | 128 | 16
    GELU = 32
    GELU_BIAS = 32 | 4
    GELU_AUX = 32 | 128
    GELU_AUX_BIAS = 32 | 128 | 4
    DGELU = 64 | 128
    DGELU_BGRAD = 64 | 128 | 16
    BGRADA = 256
    BGRADB = 512

    @property
    def has_bias(self) -> bool:
        """It reads a bias, or writes the gradient of one."""
        return bool(self & (4 | 16 | 256 | 512))

    @property
    def has_bias_gradient(self) -> bool:
        return bool(self & (16 | 256 | 512))

    @property
    def has_aux(self) -> bool:
        """It writes, or reads, what the activation's gradient needs."""
        return bool(self & 128)

    @property
    def has_mask(self) -> bool:
        """Its aux is relu's bit mask; that of gelu is gelu's input."""
        return self.has_aux and bool(self & (2 | 8))


MATMUL_DESC: dict[str, Attribute] = {
    "TRANSA": (3, c_int32), "TRANSB": (4, c_int32), "EPILOGUE": (7, c_uint32),
    "BIAS_POINTER": (8, c_pointer), "EPILOGUE_AUX_POINTER": (11, c_pointer),
    "EPILOGUE_AUX_LD": (12, c_int64)}
MATRIX_LAYOUT: dict[str, Attribute] = {
    "BATCH_COUNT": (5, c_int32), "STRIDED_BATCH_OFFSET": (6, c_int64)}
MATMUL_PREF: dict[str, Attribute] = {
    "MAX_WORKSPACE_BYTES": (1, c_uint64), "REDUCTION_SCHEME_MASK": (3, c_uint32),
    **{f"MIN_ALIGNMENT_{matrix}_BYTES": (5 + i, c_uint32) for i, matrix in enumerate("ABCD")}}


class HeuristicResult(Structure):
    """cublasLtMatmulHeuristicResult_t. Its first member is the opaque cublasLtMatmulAlgo_t."""

    _fields_ = (("algo", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int),
                ("waves", c_float), ("reserved", c_int * 4))


class Precision(NamedTuple):
    """How products of one element type are computed."""

    matrix: DataType
    compute: Compute
    scale: DataType
    #: The C type of alpha and beta.
    number: Any
    itemsize: int


#: By dtype. Two-byte floats are summed in float32.
PRECISIONS = {
    "float32": Precision(DataType.R_32F, Compute.F32, DataType.R_32F, c_float, 4),
    "float64": Precision(DataType.R_64F, Compute.F64, DataType.R_64F, c_double, 8),
    "float16": Precision(DataType.R_16F, Compute.F32, DataType.R_32F, c_float, 2),
    "bfloat16": Precision(DataType.R_16BF, Compute.F32, DataType.R_32F, c_float, 2)}

"""Problem: a matrix product by its shapes, strides and dtype, with the plans made for it; and the
arrays that belong to an epilogue, with cuBLASLt's limits on them.

Limits (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD): relu's mask has one bit for each element,
rows a multiple of 128 bits apart; gelu's input has rows a multiple of 8 elements apart. Both begin
at a multiple of 16 bytes. What writes or reads more than one bias must be a single matrix.
"""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gtape.core.errors import InvalidArgumentError
from gtape.devices.cuda.gemm.blaslt import PRECISIONS, Epilogue, Precision
from gtape.devices.cuda.gemm.layout import (
    MOST_LAUNCHES,
    ProductGeometry,
    Strided,
    contiguous,
    geometry,
)
from gtape.devices.cuda.gemm.plan import ProductPlan
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import address

if TYPE_CHECKING:
    from gtape.core.device import Array

#: The operands must be copied first.
COPY: Any = object()


#: What a problem is known by: shape and strides in bytes of a, those of b, the dtype, whether a and
#: b are transposed, the strides of the result if it is given. A plain tuple: each call makes one.
Key = tuple[Any, ...]
_precisions: dict[Any, Precision | None] = {}


def rekeyed(key: Key, a: Array, b: Array) -> Key:
    """The key for other operands."""
    return (a.shape, a.strides, b.shape, b.strides, *key[4:])


def precision_of(dtype: np.dtype) -> Precision | None:
    """How products of a dtype are computed; None: not here. `dtype.name` takes too long."""
    try:
        return _precisions[dtype]
    except KeyError:
        return _precisions.setdefault(dtype, PRECISIONS.get(dtype.name))


class Problem:
    """The result's `shape`, how it is computed, and plans by request. `empty`: the result has no
    elements. `hollow`: it has, but is a sum over nothing. `inner`: the length of that sum.
    `distances`: the bits set in any distance, in bytes, between the products of a batch, whose
    alignment they limit."""

    __slots__ = ("distances", "empty", "geometry", "hollow", "inner", "plans", "precision", "shape")

    def __init__(self, shape: tuple[int, ...], inner: int, precision: Precision) -> None:
        self.shape = shape
        self.inner = inner
        self.empty = 0 in shape
        self.hollow = not inner and not self.empty
        self.precision = precision
        self.geometry: ProductGeometry | None = None
        self.distances = 0
        #: False: the library has no algorithm.
        self.plans: dict[Any, ProductPlan | Literal[False]] = {}

    @staticmethod
    def of(key: Key) -> Any:
        """The problem of a key, or COPY."""
        shape_a, strides_a, shape_b, strides_b, dtype, transpose_a, transpose_b, strides_out = key
        size = dtype.itemsize
        a, b = _strided(shape_a, strides_a, size), _strided(shape_b, strides_b, size)
        dense = _dense(a) and _dense(b)
        a = a.transposed() if transpose_a else a
        b = b.transposed() if transpose_b else b
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        problem = Problem(shape, a.shape[-1], PRECISIONS[dtype.name])
        if problem.empty or problem.hollow:
            return problem
        c = contiguous(shape) if strides_out is None else _strided(shape, strides_out, size)
        problem.geometry = geometry(a, b, c)
        if problem.geometry is None or (
                not dense and len(problem.geometry.offsets) > MOST_LAUNCHES):
            return COPY
        for distance in chain(problem.geometry.batch[1:], *problem.geometry.offsets):
            # Or'ed, since the lowest bit set in any is what all are multiples of.
            problem.distances |= distance * size
        return problem

    def __str__(self) -> str:
        rows, columns = self.shape[-2:]
        return (f"[{rows}, {self.inner}] @ [{self.inner}, {columns}] in "
                f"{self.precision.matrix.name}")


def _dense(x: Strided) -> bool:
    """Whether x is C-contiguous; strides of axes of length 1 mean nothing."""
    wanted = contiguous(x.shape).strides
    return all(n == 1 or s == t for n, s, t in zip(x.shape, x.strides, wanted))


def _strided(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> Strided:
    return Strided(shape, tuple(s // itemsize for s in strides))


_MASK_BITS = 128
_GELU_ELEMENTS = 8


def auxiliary(gpu: Executor, epilogue: Epilogue, rows: int, columns: int, dtype: np.dtype) -> Any:
    """Memory for what `epilogue` saves of a result [rows, columns]: relu's mask, whose bits only
    DRELU can read, as uint8 [rows, bytes]; gelu's input, as `dtype` [rows, columns or more]."""
    # Only DRELU reads the bits: their order is the library's own, and is not documented.
    if epilogue.has_mask:
        return gpu.empty((rows, -(-columns // _MASK_BITS) * (_MASK_BITS // 8)), "uint8")
    return gpu.empty((rows, -(-columns // _GELU_ELEMENTS) * _GELU_ELEMENTS), dtype)


def extras(problem: Problem, epilogue: Epilogue, dtype: np.dtype, bias: object, aux: Any,
           ) -> tuple[int, int, int] | None:
    """The addresses of bias and aux, and the distance of aux's rows; None beyond the limits. Raises
    InvalidArgumentError: one is missing, or not wanted, or has another shape or dtype than the
    epilogue needs."""
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

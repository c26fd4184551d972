"""matmul: the matrix product and its adjoints."""

from __future__ import annotations

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype, float32, float64, int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import Readable, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import one_dtype
from gtape.ops.elementwise.scalars import conj
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims, squeeze, sum_to, swap_last


@primitive(tf_name="BatchMatMulV2")
def matmul_(xp: ArrayModule, a: Array, b: Array, *, transpose_a: bool = False,
            transpose_b: bool = False) -> Array:
    """y[…,i,k] = Σⱼ a[…,i,j] b[…,j,k], batch axes broadcast; either matrix may be transposed."""
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    # BLAS has no two-byte floats, and NumPy's own loop over them is slow.
    if a.dtype.itemsize == 2 and xp is np and a.dtype.kind not in "iu":
        return xp.matmul(a.astype("float32"), b.astype("float32")).astype(a.dtype)
    return xp.matmul(a, b)


@matmul_.infer
def _(a: Spec, b: Spec, *, transpose_a: bool, transpose_b: bool) -> Spec:
    one_dtype("matmul", (a, b))
    if not (a.dtype.is_differentiable or a.dtype.is_integer):
        raise InvalidArgumentError(f"matmul takes numbers; got {a}, {b}")
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidArgumentError(f"matmul: both tensors must have rank 2 or more; got {a} @ {b}. "
                                   f"Use tf.linalg.matvec for a vector, tf.tensordot for two")
    rows, inner = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    inner_b, columns = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    if inner != inner_b:
        raise InvalidArgumentError(
            f"matmul: the columns of a must equal the rows of b; got a {a}"
            f"{' transposed' if transpose_a else ''} with {inner} columns, b {b}"
            f"{' transposed' if transpose_b else ''} with {inner_b} rows. "
            f"Perhaps transpose_b=True is meant")
    batch = broadcast_shapes("matmul (batch axes)", a.reshaped(a.shape[:-2]),
                             b.reshaped(b.shape[:-2]))
    return a.reshaped((*batch, rows, columns))


matmul_.on_cuda("gemm.gemm.matmul")


@matmul_.vjp("a")
def _(g: Tensor, a_spec: Spec, b: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    if transpose_a:
        part = matmul_(b, g, transpose_a=transpose_b, transpose_b=True)
    else:
        part = matmul_(g, b, transpose_b=not transpose_b)
    return sum_to(part, a_spec.shape)


@matmul_.vjp("b")
def _(g: Tensor, a: Tensor, b_spec: Spec, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    if transpose_b:
        part = matmul_(g, a, transpose_a=True, transpose_b=transpose_a)
    else:
        part = matmul_(a, g, transpose_a=not transpose_a)
    return sum_to(part, b_spec.shape)


matmul_.cases = [case((2, 3), (3, 4)), case((5, 2, 3), (3, 4)), case((1, 2, 3), (4, 3, 2)),
                 case((3, 2), (3, 4), transpose_a=True), case((2, 3), (4, 3), transpose_b=True),
                 case((3, 2), (4, 3), transpose_a=True, transpose_b=True)]


def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, output_type: object = None, name: str | None = None,
           ) -> Tensor:
    """a @ b over the last two axes, batch axes broadcast.

    Args:
        transpose_a, transpose_b: use the transpose of the last two axes.
        adjoint_a, adjoint_b: use the conjugate transpose.
        output_type: the dtype in which products are added up, and of the result: int8 matrices
            with tf.int32 do not overflow.

    Raises InvalidArgumentError: a rank below 2, lengths that do not meet, or dtypes that differ;
    ValueError: a transpose and an adjoint of the same matrix."""
    x, y = pair("matmul", a, b)
    if adjoint_a or adjoint_b:
        if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
            raise ValueError("matmul: ask for the transpose or the adjoint of a matrix, not both")
        x, transpose_a = _adjoint(x, transpose_a, adjoint_a)
        y, transpose_b = _adjoint(y, transpose_b, adjoint_b)
    if output_type is not None:
        return _wide_matmul(x, y, bool(transpose_a), bool(transpose_b), as_dtype(output_type))
    # `run` with values in the order of the attributes: the call by keywords costs a dictionary.
    return matmul_.run((x, y), (bool(transpose_a), bool(transpose_b)))[0]


def _wide_matmul(x: Tensor, y: Tensor, transpose_a: bool, transpose_b: bool, dtype: DType,
                 ) -> Tensor:
    """The product with the sums in `dtype`. Bytes are multiplied as floats that hold their sums
    exactly, for which there is BLAS."""
    terms = x.spec.shape[-2 if transpose_a else -1] if x.ndim else 0
    within = dtype
    if dtype is int32 and type(terms) is int and all(
            v.dtype.is_integer and v.dtype.size == 1 for v in (x, y)):
        # float32 holds integers exactly up to 2**24, float64 beyond those of int32.
        largest = terms * 255 * 255
        within = float32 if largest < 2 ** 24 else float64 if largest < 2 ** 31 else dtype
    return cast(matmul_(cast(x, within), cast(y, within), transpose_a=transpose_a,
                        transpose_b=transpose_b), dtype)


def pair(name: str, a: TensorLike, b: TensorLike) -> tuple[Tensor, Tensor]:
    """Two operands as tensors; the one that is a tensor sets dtype and device of the other."""
    # The common case first, without a call.
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a, b
    if isinstance(a, Tensor) and isinstance(b, Readable):
        return a, b._read_()
    for like in (a, b):
        if isinstance(like, (Tensor, Readable)):
            return convert_like(a, like._t, name), convert_like(b, like._t, name)
    first = convert(a)
    return first, convert_like(b, first._t, name)


def _adjoint(x: Tensor, transposed: bool, adjoint: bool) -> tuple[Tensor, bool]:
    if not adjoint:
        return x, transposed
    return (conj(x) if x.dtype.is_complex else x), True


def matvec(a: TensorLike, b: TensorLike, transpose_a: bool = False, adjoint_a: bool = False,
           a_is_sparse: bool = False, b_is_sparse: bool = False, name: str | None = None,
           ) -> Tensor:
    """y[…,i] = Σⱼ a[…,i,j] b[…,j]. Raises InvalidArgumentError: as `matmul`."""
    # As a matrix of one column: one op, and one set of rules and kernels, for both.
    x, y = pair("matvec", a, b)
    return squeeze(matmul(x, expand_dims(y, -1), transpose_a, adjoint_a=adjoint_a), -1)


def matrix_transpose(a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False,
                     ) -> Tensor:
    """The last two axes exchanged, conjugated if asked.
    Raises InvalidArgumentError: a rank below 2."""
    x = convert(a)
    if x.ndim < 2:
        raise InvalidArgumentError(f"matrix_transpose needs rank 2 or more; got {x.spec}")
    y = swap_last(x)
    return conj(y) if conjugate and x.dtype.is_complex else y

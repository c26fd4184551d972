"""Inverses and linear systems, and what ops on matrices share: checks, small floats, failures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import Tensor
from gtape.numerics import systems
from gtape.numerics.arrays import is_short
from gtape.numerics.systems import solve_triangular
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import one_dtype
from gtape.ops.elementwise.operators import conj
from gtape.ops.linalg.diagonals import band_part_, diag_, diag_part_, set_diag_
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.shape.layout import sum_to, swap_last

# One for all: entering it costs nothing.
_NOTHING = nullcontext()
#: A well-conditioned matrix, which the ops are tested on.
WELL = [[2.0, 0.3, -0.4], [0.5, 1.7, 0.2], [-0.1, 0.6, 1.5]]


def matrix_spec(name: str, x: Spec, square: bool = False) -> Spec:
    """`x`. Raises InvalidArgumentError unless it holds floating or complex (square) matrices."""
    if not x.dtype.is_differentiable:
        raise InvalidArgumentError(f"{name} takes floating or complex matrices; got {x}. "
                                   f"Write tf.cast(x, tf.float32)")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        what = "square matrices [..., n, n]" if square else "rank 2 or more"
        raise InvalidArgumentError(f"{name} needs {what}; got {x}")
    return x


def _failures_told(xp: ArrayModule) -> AbstractContextManager[object]:
    """Inside, CuPy raises LinAlgError as NumPy does."""
    if xp is np:
        return _NOTHING
    # CuPy must be asked to, since it then waits for the device.
    import cupyx

    return cupyx.errstate(linalg="raise")


def computed(xp: ArrayModule, failure: str, routine: Callable[..., object], *arrays: Any,
             rule: systems.NonfiniteRule | None = systems.NAN) -> Any:
    """routine(*arrays); the first array holds the matrices.

    Where it fails for a finite matrix, `failure` begins the error. A matrix that holds nan or inf,
    of which LAPACK may make a number, gives what `rule` says, each of a batch for itself; None is
    for a routine whose own arithmetic carries them through.
    """
    dtype = arrays[0].dtype
    # LAPACK has no float16 and no bfloat16.
    short = is_short(dtype)
    work = [a.astype(np.float32) for a in arrays] if short else arrays
    try:
        with _failures_told(xp):
            y = routine(*work) if rule is None else systems.guarded(xp, routine, work, rule)
    except np.linalg.LinAlgError as error:
        raise InvalidArgumentError(f"{failure} ({error})") from None
    return _narrowed(y, dtype) if short else y


def _narrowed(results: Any, dtype: np.dtype) -> Any:
    if isinstance(results, tuple):
        return tuple([_narrowed(m, dtype) for m in results])
    return results.astype(dtype) if results.dtype == np.float32 else results


def adjoint_of(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(swap_last(x))


_COMPLEX = ("complex128",)


@primitive(tf_name="MatrixInverse")
def inv_(xp: ArrayModule, a: Array) -> Array:
    """y = a⁻¹."""
    return computed(xp, "inv: the matrix is not invertible", xp.linalg.inv, a,
                    rule=systems.ONLY_NAN)

inv_.infer(lambda a: matrix_spec("inv", a, square=True))
# The result is read, not the matrix: no second inverse.
inv_.vjp(a=lambda g, y: -matmul_(matmul_(y, g, transpose_a=True), y, transpose_b=True))
inv_.cases = [case(WELL), case([WELL, WELL]), case((0, 0)), case((2, 2), dtypes=_COMPLEX)]


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, or of their conjugate transposes.
    Raises InvalidArgumentError: not square, or singular."""
    y = inv_(convert(input))
    return adjoint_of(y) if adjoint else y


def _system_spec(name: str, a: Spec, b: Spec) -> Spec:
    one_dtype(name, (a, b))
    matrix_spec(name, a, square=True)
    if b.ndim < 2:
        raise InvalidArgumentError(f"{name}: the right-hand side must be [..., n, columns]; got "
                                   f"{b}. Write rhs[:, tf.newaxis] for one vector")
    if b.shape[-2] != a.shape[-1]:
        raise InvalidArgumentError(f"{name}: the right-hand side must have as many rows as the "
                                   f"matrix; got {a} and {b}")
    batch = broadcast_shapes(f"{name} (batch axes)", a.reshaped(a.shape[:-2]),
                             b.reshaped(b.shape[:-2]))
    return b.reshaped((*batch, *b.shape[-2:]))


def _operands(xp: Any, a: Any, b: Any, transpose: bool) -> tuple[Any, Any]:
    """The matrix, transposed if asked, and the right-hand side, with one batch shape."""
    # Broadcast here: `numpy.linalg.solve` may take a right-hand side of fewer axes for a vector.
    left = xp.swapaxes(a, -1, -2) if transpose else a
    if left.shape[:-2] == b.shape[:-2]:
        return left, b
    batch = np.broadcast_shapes(left.shape[:-2], b.shape[:-2])
    return (xp.broadcast_to(left, (*batch, *left.shape[-2:])),
            xp.broadcast_to(b, (*batch, *b.shape[-2:])))


@primitive(tf_name="MatrixSolve")
def solve_(xp: ArrayModule, a: Array, b: Array, *, transpose: bool = False) -> Array:
    """x with a x = b, or aᵀ x = b."""
    return computed(xp, "solve: the matrix is not invertible", xp.linalg.solve,
                    *_operands(xp, a, b, transpose), rule=systems.ONLY_NAN)


solve_.infer(lambda a, b, **_: _system_spec("solve", a, b))


@solve_.vjp("a", "b")
def _(g: Tensor, a: Tensor, b_spec: Spec, y: Tensor, *, transpose: bool) -> tuple[Tensor, ...]:
    part = solve_(a, g, transpose=not transpose)
    return _matrix_part(part, y, a.spec, transpose), sum_to(part, b_spec.shape)


def _matrix_part(part: Tensor, y: Tensor, a: Spec, transpose: bool) -> Tensor:
    """The cotangent of the matrix, given that of the right-hand side."""
    left, right = (y, part) if transpose else (part, y)
    return sum_to(-matmul_(left, right, transpose_b=True), a.shape)


solve_.cases = [case(WELL, (3, 2)), case([WELL, WELL], (3, 1)), case(WELL, (2, 3, 1)),
                case(WELL, (3, 2), transpose=True), case((2, 2), (2, 1), dtypes=_COMPLEX)]


def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None,
          ) -> Tensor:
    """x with matrix x = rhs, or with the conjugate transpose of the matrix.
    Raises InvalidArgumentError: not square, singular, or shapes or dtypes that do not fit."""
    a, b = pair("solve", matrix, rhs)
    return solve_(conj(a) if adjoint else a, b, transpose=bool(adjoint))


@primitive(tf_name="MatrixTriangularSolve")
def triangular_solve_(xp: ArrayModule, a: Array, b: Array, *, lower: bool = True,
                      transpose: bool = False) -> Array:
    """x with T x = b, or Tᵀ x = b, T one triangle of a."""
    below = lower != transpose
    part = systems.lower if below else systems.upper
    return computed(xp, "triangular_solve: the matrix is not invertible",
                    lambda t, r: solve_triangular(xp, t, r, below),
                    *_operands(xp, a, b, transpose), rule=part(systems.ONLY_NAN))


triangular_solve_.infer(lambda a, b, **_: _system_spec("triangular_solve", a, b))


@triangular_solve_.vjp("a", "b")
def _(g: Tensor, a: Tensor, b_spec: Spec, y: Tensor, *, lower: bool, transpose: bool,
      ) -> tuple[Tensor, ...]:
    part = triangular_solve_(a, g, lower=lower, transpose=not transpose)
    whole = _matrix_part(part, y, a.spec, transpose)
    # Only the triangle that was read has a gradient.
    kept = band_part_(whole, lower=-1 if lower else 0, upper=0 if lower else -1)
    return kept, sum_to(part, b_spec.shape)


triangular_solve_.cases = [
    case(WELL, (3, 2)), case(WELL, (3, 2), lower=False), case([WELL, WELL], (3, 1)),
    case(WELL, (3, 2), transpose=True), case((2, 2), (2, 1), dtypes=_COMPLEX)]


def triangular_solve(matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False,
                     name: str | None = None) -> Tensor:
    """x with T x = rhs, or Tᴴ x = rhs, where T is the lower or upper triangle of `matrix`.
    Raises InvalidArgumentError: not square, a zero on the diagonal, or shapes that do not fit."""
    a, b = pair("triangular_solve", matrix, rhs)
    return triangular_solve_(conj(a) if adjoint else a, b, lower=bool(lower),
                             transpose=bool(adjoint))


def banded_triangular_solve(bands: TensorLike, rhs: TensorLike, lower: bool = True,
                            adjoint: bool = False, name: str | None = None) -> Tensor:
    """x with T x = rhs, where T is triangular with few diagonals.

    Args:
        bands: [..., count, n]. Lower: the main diagonal first, then those below it, each aligned
            to the right of its row. Upper: the highest first and the main one last, aligned to
            the left.

    Raises InvalidArgumentError: as `triangular_solve`."""
    x, b = pair("banded_triangular_solve", bands, rhs)
    if x.ndim < 2 or x.spec.shape[-2] > x.spec.shape[-1]:
        raise InvalidArgumentError(f"banded_triangular_solve: the bands must be [..., count, n] "
                                   f"with count <= n; got {x.spec}")
    count, n = x.spec.shape[-2:]
    k, align = ((1 - count, 0), "LEFT_RIGHT") if lower else ((0, count - 1), "LEFT_LEFT")
    full = diag_(x, k=k, rows=n, columns=n, align=align)
    return triangular_solve(full, b, lower=lower, adjoint=adjoint)


@primitive(tf_name="Cholesky", holomorphic=False)
def cholesky_(xp: ArrayModule, a: Array) -> Array:
    """The lower triangular y with y yᴴ = a; the lower triangle of a is read."""
    return computed(xp, "cholesky: the matrix is not positive definite", xp.linalg.cholesky, a,
                    rule=systems.lower(systems.ONLY_NAN))

cholesky_.infer(lambda a: matrix_spec("cholesky", a, square=True))
@cholesky_.vjp("a")
def _(g: Tensor, y: Tensor) -> Tensor:
    # Murray 2016, arXiv:1602.07527, section 3, with the cotangent spread over both triangles.
    back = adjoint_of(y)
    middle = band_part_(matmul_(back, g), lower=-1, upper=0)
    middle = set_diag_(middle, 0.5 * diag_part_(middle))
    left = triangular_solve_(back, middle, lower=False)
    whole = adjoint_of(triangular_solve_(back, adjoint_of(left), lower=False))
    return 0.5 * (whole + adjoint_of(whole))


# The gradient is spread over both triangles of which one is read, so differences confirm it only
# along Hermitian directions; those of a number all are.
cholesky_.cases = [case([[2.0]]), case([[[2.0]], [[3.0]]])]


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular L with L Lᴴ = input, for Hermitian positive definite matrices.

    Only the lower triangle is read; the gradient is Hermitian.

    Raises InvalidArgumentError: not square, or not positive definite."""
    return cholesky_(convert(input))


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """x with L Lᴴ x = rhs, given the Cholesky factor L.
    Raises InvalidArgumentError: as `triangular_solve`."""
    factor, b = pair("cholesky_solve", chol, rhs)
    # L y = rhs, then Lᴴ x = y.
    return triangular_solve(factor, triangular_solve(factor, b), adjoint=True)

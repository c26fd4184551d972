"""Diagonals, bands and triangles of matrices: taken out, put in, or kept."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, host_value, one_dtype
from gtape.ops.linalg.products import matrix_transpose, pair
from gtape.ops.shape.creation import zeros_like
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import stack_, unstack_

Range = tuple[int, int]
_ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


# A program has matrices of a few sizes; an entry is as large as the diagonals.
@lru_cache(256)
def _cells(rows: int, columns: int, k: Range, align: str) -> tuple[np.ndarray, np.ndarray]:
    """For diagonals packed as [count, longest]: their cells in the flattened matrix, and where a
    packed place is used."""
    low, high = k
    longest = _packed_shape(rows, columns, k)[-1]
    cells = np.zeros((high - low + 1, longest), np.int64)
    used = np.zeros(cells.shape, bool)
    # LAPACK packs short diagonals as RIGHT_LEFT, cuSPARSE as LEFT_RIGHT.
    upper, lower = align.split("_")
    for i, d in enumerate(range(high, low - 1, -1)):
        n = _length(rows, columns, d)
        side = upper if d >= 0 else lower
        start = longest - n if side == "RIGHT" else 0
        steps = np.arange(n)
        # Cells of places that are not used stay 0: they are read, and then replaced by the padding.
        cells[i, start:start + n] = (steps + max(-d, 0)) * columns + steps + max(d, 0)
        used[i, start:start + n] = True
    return cells, used


def _length(rows: int, columns: int, d: int) -> int:
    return max(0, min(rows + min(d, 0), columns - max(d, 0)))


def _packed_shape(rows: int, columns: int, k: Range) -> tuple[int, ...]:
    longest = max(_length(rows, columns, d) for d in range(k[0], k[1] + 1))
    return (longest,) if k[0] == k[1] else (k[1] - k[0] + 1, longest)


@primitive(linear="x", tf_name="MatrixDiagPartV3")
def diag_part_(xp: ArrayModule, x: Array, *, k: Range = (0, 0), align: str = "RIGHT_LEFT",
               padding: float = 0) -> Array:
    """The diagonals k[0] … k[1] of matrices, the uppermost first, packed into rows."""
    rows, columns = x.shape[-2:]
    # The main diagonal is a view of the matrix, copied once; others are gathered by their cells.
    if k == (0, 0):
        return xp.array(xp.diagonal(x, axis1=-2, axis2=-1))
    cells, used = _cells(rows, columns, k, align)
    flat = x.reshape(*x.shape[:-2], rows * columns)
    y = flat[..., xp.asarray(cells)]
    # Only diagonals of different lengths leave places over.
    if not used.all():
        y = xp.where(xp.asarray(used), y, xp.asarray(padding, dtype=x.dtype))
    return y.reshape(*x.shape[:-2], *_packed_shape(rows, columns, k))


@diag_part_.infer
def _(x: Spec, *, k: Range, align: str, padding: float) -> Spec:
    _matrix("diag_part", x)
    _check_range("diag_part", x.shape[-2], x.shape[-1], k, x)
    return x.reshaped((*x.shape[:-2], *_packed_shape(x.shape[-2], x.shape[-1], k)))


# Without the padding: it is constant, and a cotangent of it belongs to nothing.
diag_part_.vjp(x=lambda g, x_spec, *, padding, **attrs:
               diag_(g, **attrs, rows=x_spec.shape[-2], columns=x_spec.shape[-1]))
diag_part_.cases = [case((3, 3)), case((2, 3, 4), k=(-1, 2)), case((4, 2), k=(-2, -2)),
                    case((3, 4), k=(-1, 1), align="LEFT_RIGHT")]


@primitive(linear="x", tf_name="MatrixDiagV3")
def diag_(xp: ArrayModule, x: Array, *, k: Range = (0, 0), rows: int, columns: int,
          align: str = "RIGHT_LEFT", padding: float = 0) -> Array:
    """Matrices [rows, columns] with the packed diagonals `x`, and `padding` elsewhere."""
    batch = x.shape[:-1] if k[0] == k[1] else x.shape[:-2]
    # As an array of x's dtype: by itself NumPy takes bytes for a type that drops NULs at their end.
    y = xp.full((*batch, rows * columns), xp.asarray(padding, dtype=x.dtype), x.dtype)
    cells, used = _cells(rows, columns, k, align)
    flat = x.reshape(*batch, used.size)
    y[..., xp.asarray(cells[used])] = flat if used.all() else flat[
        ..., xp.asarray(np.flatnonzero(used))]
    return y.reshape(*batch, rows, columns)


@diag_.infer
def _(x: Spec, *, k: Range, rows: int, columns: int, align: str, padding: float) -> Spec:
    _check_range("diag", rows, columns, k, x)
    shape = _packed_shape(rows, columns, k)
    if x.shape[x.ndim - len(shape):] != shape:
        raise InvalidArgumentError(
            f"diag: the diagonals {k[0]} … {k[1]} of a matrix [{rows}, {columns}] need the last "
            f"axes {list(shape)}; got {x}")
    return x.reshaped((*x.shape[:x.ndim - len(shape)], rows, columns))


diag_.vjp(x=lambda g, *, rows, columns, padding, **attrs: diag_part_(g, **attrs))
diag_.cases = [case((3,), rows=3, columns=3), case((2, 3, 3), k=(-1, 1), rows=3, columns=4),
               case((2, 2), k=(1, 1), rows=3, columns=3)]


@primitive(tf_name="MatrixSetDiagV3")
def set_diag_(xp: ArrayModule, x: Array, diagonal: Array, *, k: Range = (0, 0),
              align: str = "RIGHT_LEFT") -> Array:
    """`x` with its diagonals k[0] … k[1] replaced."""
    rows, columns = x.shape[-2:]
    cells, used = _cells(rows, columns, k, align)
    y = xp.array(x).reshape(*x.shape[:-2], rows * columns)
    flat = diagonal.reshape(*x.shape[:-2], used.size)
    y[..., xp.asarray(cells[used])] = flat[..., xp.asarray(np.flatnonzero(used))]
    return y.reshape(x.shape)


@set_diag_.infer
def _(x: Spec, diagonal: Spec, *, k: Range, align: str) -> Spec:
    one_dtype("set_diag", (x, diagonal))
    _matrix("set_diag", x)
    _check_range("set_diag", x.shape[-2], x.shape[-1], k, x)
    wanted = (*x.shape[:-2], *_packed_shape(x.shape[-2], x.shape[-1], k))
    if diagonal.shape != wanted:
        raise InvalidArgumentError(f"set_diag: for {x} the diagonal must have the shape "
                                   f"{list(wanted)}; got {diagonal}")
    return x


set_diag_.vjp(x=lambda g, **attrs: set_diag_(g, zeros_like(diag_part_(g, **attrs)), **attrs))
set_diag_.vjp(diagonal=lambda g, **attrs: diag_part_(g, **attrs))
set_diag_.cases = [case((3, 3), (3,)), case((2, 3, 4), (2, 3, 3), k=(-1, 1))]


@primitive(linear="x", tf_name="MatrixBandPart")
def band_part_(xp: ArrayModule, x: Array, *, lower: int, upper: int) -> Array:
    """x within `lower` diagonals below and `upper` above the main one, and 0 elsewhere;
    negative means all."""
    rows, columns = x.shape[-2:]
    # The number of the diagonal that a cell lies on: 0 the main one, above it positive.
    step = xp.arange(columns) - xp.arange(rows)[:, None]
    keep = xp.ones((rows, columns), bool)
    if lower >= 0:
        keep &= step >= -lower
    if upper >= 0:
        keep &= step <= upper
    return xp.where(keep, x, xp.zeros((), x.dtype))

band_part_.infer(lambda x, **_: _matrix("band_part", x))
band_part_.vjp(x=lambda g, **attrs: band_part_(g, **attrs))
band_part_.cases = [case((3, 3), lower=0, upper=-1), case((2, 3, 4), lower=1, upper=1)]


@primitive(tf_name="Cross")
def cross_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """y = a × b over the last axis."""
    return xp.cross(a, b)


@cross_.infer
def _(a: Spec, b: Spec) -> Spec:
    one_dtype("cross", (a, b))
    if a.shape != b.shape or not a.ndim or a.shape[-1] != 3:
        raise InvalidArgumentError(f"cross: both tensors must have one shape that ends in 3; got "
                                   f"{a} and {b}")
    return a


@cross_.defined
def _(a: Tensor, b: object) -> Any:
    last = a.ndim - 1
    (p, q, r), (u, v, w) = unstack_(a, axis=last), unstack_(b, axis=last)
    return stack_(q * w - r * v, r * u - p * w, p * v - q * u, axis=last)


# The array function rounds as the definition does: products and a difference, no sum.
cross_.literal = True
cross_.vjp(a=lambda g, b: cross_(b, g))
cross_.vjp(b=lambda g, a: cross_(g, a))
cross_.cases = [case((3,), (3,)), case((2, 3), (2, 3))]


def _matrix(name: str, x: Spec) -> Spec:
    if x.ndim < 2:
        raise InvalidArgumentError(f"{name} needs rank 2 or more; got {x}")
    return x


def _check_range(name: str, rows: int, columns: int, k: Range, x: Spec) -> None:
    # k = 0 is allowed for a matrix without rows or columns, whose diagonal is empty, as TensorFlow
    # does; no other diagonal exists there.
    if k[0] > k[1] or (k != (0, 0) and not (-rows < k[0] and k[1] < columns)):
        raise InvalidArgumentError(
            f"{name}: k must lie between {1 - rows} and {columns - 1} for a matrix "
            f"[{rows}, {columns}], its first number not above its second; got {k} with {x}")


def _attrs(name: str, k: Any, align: str) -> dict[str, Any]:
    """The range and the alignment as attributes."""
    numbers = as_ints(k, f"{name}: k")
    if len(numbers) not in (1, 2):
        raise InvalidArgumentError(f"{name}: k must be one or two integers; got {shown(k)}")
    if align not in _ALIGNMENTS:
        raise InvalidArgumentError(f"{name}: align must be one of {', '.join(_ALIGNMENTS)}; got "
                                   f"{shown(align)}")
    return {"k": (numbers[0], numbers[-1]), "align": align}


def diag(diagonal: TensorLike, name: str = "diag", k: Any = 0, num_rows: int = -1,
         num_cols: int = -1, padding_value: float = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices whose diagonals are given, and `padding_value` elsewhere.

    Args:
        diagonal: [..., length], or [..., count, longest] for several diagonals, the uppermost
            first; shorter ones are aligned as `align` says.
        k: which diagonal: 0 the main one, above it positive; a pair gives a range.
        num_rows, num_cols: the size; -1 takes the smallest that fits.
        align: 'RIGHT_LEFT' puts the diagonals above the main one to the right of their row and
            those below to the left.

    Raises InvalidArgumentError: the sizes do not fit."""
    x = convert(diagonal)
    if not x.ndim:
        raise InvalidArgumentError("diag needs rank 1 or more; got a scalar")
    attrs = _attrs("diag", k, align)
    low, high = attrs["k"]
    if low != high and (x.ndim < 2 or x.spec.shape[-2] != high - low + 1):
        raise InvalidArgumentError(f"diag: k={low} … {high} needs {high - low + 1} diagonals in "
                                   f"the axis before the last; got {x.spec}")
    rows, columns = _size(x.spec.shape[-1], low, high, as_int(num_rows, "diag: num_rows"),
                          as_int(num_cols, "diag: num_cols"))
    return diag_(x, rows=rows, columns=columns, padding=_number(padding_value, x), **attrs)


def _size(longest: int, low: int, high: int, rows: int, columns: int) -> tuple[int, int]:
    """The smallest matrix whose longest diagonal of the range has `longest` cells."""
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows < 0 and columns < 0:
        size = max(least_rows, least_columns)
        return size, size
    return (least_rows if rows < 0 else rows), (least_columns if columns < 0 else columns)


# Hashable, since attributes key the cache of specs: a Python number, or bytes of a string.
def _number(value: Any, x: Tensor) -> Any:
    """The padding as an attribute: one value of the kind that `x` holds."""
    array = host_value(value, "padding_value")
    if array.ndim or (array.dtype.kind in "OSU") != (x.dtype is string) or (
            array.dtype.kind in "mM") or (array.dtype.kind == "c" and not x.dtype.is_complex):
        raise InvalidArgumentError(f"padding_value must be one value of {x.dtype.name}; got "
                                   f"{shown(value)}")
    return array[()] if array.dtype == object else array.item()


def diag_part(input: TensorLike, name: str = "diag_part", k: Any = 0, padding_value: float = 0,
              align: str = "RIGHT_LEFT") -> Tensor:
    """The diagonals of matrices; see `diag` for k and align. Unused places hold `padding_value`.
    Raises InvalidArgumentError: a rank below 2, or no such diagonal."""
    x = convert(input)
    return diag_part_(x, padding=_number(padding_value, x), **_attrs("diag_part", k, align))


def set_diag(input: TensorLike, diagonal: TensorLike, name: str = "set_diag", k: int = 0,
             align: str = "RIGHT_LEFT") -> Tensor:
    """`input` with its diagonals replaced; see `diag` for k and align.
    Raises InvalidArgumentError: shapes or dtypes do not fit."""
    x, d = pair("set_diag", input, diagonal)
    return set_diag_(x, d, **_attrs("set_diag", k, align))


def band_part(input: TensorLike, num_lower: int, num_upper: int, name: str | None = None) -> Tensor:
    """`input` within `num_lower` diagonals below and `num_upper` above the main one, 0 elsewhere;
    a negative number keeps all.
    Raises InvalidArgumentError: a rank below 2, or more diagonals than there are."""
    x = convert(input)
    _matrix("band_part", x.spec)
    lower = as_int(num_lower, "band_part: num_lower")
    upper = as_int(num_upper, "band_part: num_upper")
    rows, columns = x.spec.shape[-2:]
    if lower > rows or upper > columns:
        raise InvalidArgumentError(f"band_part: num_lower must be at most {rows} and num_upper at "
                                   f"most {columns}; got {lower} and {upper}")
    return band_part_(x, lower=lower, upper=upper)


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """y[i…, i…] = diagonal[i…], and 0 elsewhere. Raises InvalidArgumentError: a scalar."""
    x = convert(diagonal)
    if not x.ndim:
        raise InvalidArgumentError("tensor_diag needs rank 1 or more; got a scalar")
    shape = x.spec.shape
    size = math.prod(shape)
    y = diag_(reshape_(x, shape=(size,)), rows=size, columns=size)
    return reshape_(y, shape=shape + shape)


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """y[i…] = input[i…, i…]. Raises InvalidArgumentError: the shape is not some shape twice."""
    x = convert(input)
    half = x.ndim // 2
    shape = x.spec.shape[:half]
    if not half or shape * 2 != x.spec.shape:
        raise InvalidArgumentError(f"tensor_diag_part: the shape must be some shape twice; got "
                                   f"{x.spec}")
    size = math.prod(shape)
    return reshape_(diag_part_(reshape_(x, shape=(size, size))), shape=shape)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The vector product a × b over the last axis, which has length 3.
    Raises InvalidArgumentError: the shapes differ or do not end in 3, or dtypes differ."""
    return cross_(*pair("cross", a, b))


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose of the last two axes. Raises InvalidArgumentError: a rank below 2."""
    return matrix_transpose(matrix, conjugate=True)

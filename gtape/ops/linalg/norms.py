"""norm, normalize, l2_normalize and global_norm.

The norm of a whole tensor has gradient 0 at zero. The norm along an axis has gradient nan in a row
of zeros, as TensorFlow's, unless the cotangent is 0; `tf.math.reduce_euclidean_norm` gives 0 there.
"""

from __future__ import annotations

import math
from typing import Any

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes, reduced
from gtape.core.tensor import Tensor
from gtape.numerics.sums import total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import axes_of, taken
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.operators import squared_length
from gtape.ops.reductions.reductions import prepared, reduce_max_, reduce_sum_
from gtape.ops.shape.casting import cast, cast_
from gtape.ops.shape.creation import ones_like, zeros_like
from gtape.ops.shape.layout import reshape_, transpose_
from gtape.ops.shape.packing import stack_

Axes = tuple[int, ...]


def _checked(x: Spec) -> Spec:
    return taken("norm", "floating or complex tensors", x, ". Write tf.cast(x, tf.float32)")


@primitive(tf_name="EuclideanNorm", holomorphic=False)
def euclidean_norm_(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
    """y = √Σ|x|² over `axis`. The gradient x / y at y = 0 is 0 over all axes, nan over some."""
    if x.dtype.name in ("float16", "bfloat16"):
        # Squares of float16 above 255 are infinite in it.
        wide = x.astype("float32")
        return xp.sqrt(total(wide * wide, axis, keepdims)).astype(x.dtype)
    squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return xp.sqrt(total(squares, axis, keepdims))


euclidean_norm_.defined(lambda x, *, axis, keepdims:
                        s.sqrt(reduce_sum_(squared_length(x), axis=axis, keepdims=keepdims)))
euclidean_norm_.infer(lambda x, *, axis, keepdims:
                      Spec(reduced(_checked(x).shape, axis, keepdims), x.dtype.real_dtype))


@euclidean_norm_.vjp("x")
def _(g: Tensor, x: Tensor, y: Tensor, *, axis: Axes) -> Tensor:
    kept = reduced(x.spec.shape, axis, True)
    # A whole norm may be of a gradient that is 0, and has the gradient 0 there; that along an axis
    # is nan, as TensorFlow's.
    whole = len(axis) == x.ndim
    scale = (s.divide_no_nan if whole else s.over)(reshape_(g, shape=kept), reshape_(y, shape=kept))
    return x * cast(scale, x.dtype)


euclidean_norm_.cases = [
    case((2, 3), axis=(0, 1)), case((2, 3), axis=(1,), keepdims=True), case((2, 3, 2), axis=(0, 2)),
    case((2, 3), axis=(1,), dtypes=("complex128",))]


def norm(tensor: TensorLike, ord: Any = "euclidean", axis: IntsLike | None = None,
         keepdims: bool | None = None, name: str | None = None) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        ord: for vectors 'euclidean', np.inf, or a number p > 0 for (Σ|x|ᵖ)^(1/p); for matrices
            'euclidean' or 'fro' (√Σ|x|²), 1 (the largest column sum), np.inf (the largest row
            sum), 2 (the largest singular value).
        axis: None takes all elements as one vector, an integer vectors along it, and a pair the
            matrices in these two axes.
        keepdims: keep the axes as length 1.

    Returns:
        A tensor of the dtype of `tensor`, real for a complex one. The gradient of a whole norm at
        zero is 0.

    Raises ValueError: an unknown `ord`, or an axis that is not None, an integer or a pair;
    InvalidArgumentError: no such axis, or integers."""
    x = convert(tensor)
    given = axes_of(axis)
    is_matrix = isinstance(given, tuple) and len(given) > 1
    if isinstance(given, tuple) and not 1 <= len(given) == len(set(given)) <= 2:
        raise ValueError(f"norm: axis must be None, an integer or two distinct integers; got "
                         f"{shown(axis)}")
    axes = normal_axes("norm", given, x.ndim)
    _check_order(ord, is_matrix)
    if is_matrix:
        # In the order given, which `axes` is not in: the first holds the rows.
        y = _matrix_norm(x, ord, tuple(a % x.ndim for a in given))  # type: ignore[union-attr]
    else:
        y = _vector_norm(x, ord, axes)
    return y if keepdims else reshape_(y, shape=reduced(x.spec.shape, axes, False))


def _check_order(order: float | str, is_matrix: bool) -> None:
    if is_matrix:
        if order not in ("euclidean", "fro", 1, 2, math.inf):
            raise ValueError(f"norm: 'ord' must be one of 'euclidean', 'fro', 1, 2, np.inf for "
                             f"matrices; got {shown(order)}")
    elif order != "euclidean" and (not isinstance(order, (int, float)) or order <= 0):
        raise ValueError(f"norm: 'ord' must be 'euclidean', np.inf or a positive number for "
                         f"vectors; got {shown(order)}. For a matrix norm give two axes")


def _vector_norm(x: Tensor, order: float | str, axes: Axes) -> Tensor:
    """The norm over `axes`, kept as length 1."""
    if order in ("euclidean", 2):
        return euclidean_norm_(x, axis=axes, keepdims=True)
    size = _magnitude(x)
    if order == 1:
        return reduce_sum_(size, axis=axes, keepdims=True)
    if order == math.inf:
        return reduce_max_(size, axis=axes, keepdims=True)
    return _root(reduce_sum_(s.power(size, float(order)), axis=axes, keepdims=True), float(order))


def _root(total: Tensor, order: float) -> Tensor:
    """total^(1/order), with gradient 0 where total is 0."""
    # The slope of 0 ** (1 / p) is infinite, and 0 times it nan: a `where` behind the power alone
    # would let it through.
    positive = total > 0
    safe = s.where(positive, total, ones_like(total))
    return s.where(positive, safe ** (1 / order), zeros_like(total))


def _magnitude(x: Tensor) -> Tensor:
    _checked(x.spec)
    return s.complex_abs(x) if x.dtype.is_complex else s.real_abs(x)


def _matrix_norm(x: Tensor, order: float, axes: Axes) -> Tensor:
    """The norm of the matrices whose rows and columns lie along `axes`, kept as length 1."""
    # Axes of an op come in order: they are part of the key of its cache.
    if order in ("euclidean", "fro"):
        return euclidean_norm_(x, axis=tuple(sorted(axes)), keepdims=True)
    rows, columns = axes
    if order in (1, math.inf):
        inner, outer = (rows, columns) if order == 1 else (columns, rows)
        sums = reduce_sum_(_magnitude(x), axis=(inner,), keepdims=True)
        return reduce_max_(sums, axis=(outer,), keepdims=True)
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    # tf.clip_by_value comes with norms, which need not load every decomposition.
    from gtape.ops.linalg.eigen import singular_values

    values = singular_values(transpose_(x, perm=(*rest, rows, columns)))
    largest = reduce_max_(values, axis=(values.ndim - 1,))
    return reshape_(largest, shape=reduced(x.spec.shape, axes, True))


def normalize(tensor: TensorLike, ord: str = "euclidean", axis: IntsLike | None = None,
              name: str | None = None) -> tuple[Tensor, Tensor]:
    """(tensor / norm, norm), the norm with its axes kept as length 1.
    Raises ValueError, InvalidArgumentError: as `norm`."""
    x = convert(tensor)
    length = norm(x, ord=ord, axis=axis, keepdims=True)
    return x / cast(length, x.dtype), length


def l2_normalize(x: TensorLike, axis: object = None, epsilon: float = 1e-12,
                 name: str | None = None, dim: object = None) -> Tensor:
    """x / √max(Σ|x|², epsilon) over `axis` (all axes when None).
    Raises InvalidArgumentError: no such axis, or not floating or complex."""
    tensor = convert(x)
    # `dim` is the name of the argument before TensorFlow 2.
    axes = normal_axes("l2_normalize", axes_of(dim if axis is None else axis), tensor.ndim)
    total = reduce_sum_(squared_length(tensor), axis=axes, keepdims=True)
    return tensor * cast(s.rsqrt(s.maximum(total, epsilon)), tensor.dtype)


def global_norm(t_list: TensorLike, name: str | None = None) -> Tensor:
    """√Σ‖t‖² over the tensors of a list; None entries are skipped, and of IndexedSlices the
    values are taken as they are, repeated rows not added.
    Raises TypeError: `t_list` is not a sequence."""
    if isinstance(t_list, (str, Tensor)) or not isinstance(t_list, (list, tuple)):
        raise TypeError(f"global_norm takes a list of tensors; got {type(t_list).__name__}")
    tensors = [convert(item.values if isinstance(item, IndexedSlices) else item)
               for item in t_list if item is not None]
    lengths = [euclidean_norm_(x, axis=tuple(range(x.ndim))) for x in tensors]
    if not lengths:
        return convert(0.0, dtypes.float32)
    if len(lengths) == 1:
        return lengths[0]
    # The norm of the norms, whose gradient at 0 is 0 again.
    return euclidean_norm_(stack_(*lengths, axis=0), axis=(0,))


def reduce_euclidean_norm(input_tensor: TensorLike, axis: IntsLike | None = None,
                          keepdims: bool = False, name: str | None = None) -> Tensor:
    """√(Σ |x|²) over `axis`, in the dtype of x; its gradient is 0 where it is 0.
    Raises InvalidArgumentError: no such axis, or bools."""
    x, axes = prepared("reduce_euclidean_norm", input_tensor, axis)
    # Integers: the root in float64, its fraction cut off.
    wide = cast_(x, dtype=dtypes.float64) if x.dtype.is_integer else x
    total = reduce_sum_(squared_length(wide), axis=axes, keepdims=bool(keepdims))
    return cast(s.root(total), x.dtype)

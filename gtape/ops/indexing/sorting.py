"""Order: sort, top_k, argmax and kin, searchsorted, permutations. All work along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int, index_tensor, named, taken
from gtape.ops.elementwise import scalars as s
from gtape.ops.reductions.reductions import reduce_all_, reduce_any_, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import is_class
from gtape.ops.shape.layout import reshape_, transpose_
from gtape.ops.shape.packing import split_


class TopKV2(NamedTuple):
    values: Tensor
    indices: Tensor


class ApproxTopK(NamedTuple):
    values: Tensor
    indices: Tensor


def _order(xp: ArrayModule, x: Array, descending: bool) -> Any:
    """The positions of the sorted elements of each row; equal ones keep their order."""
    if not descending:
        return xp.argsort(x, axis=-1, kind="stable")
    # Turned round before and behind, so that equal elements keep their order.
    return xp.flip(x.shape[-1] - 1 - xp.argsort(xp.flip(x, -1), axis=-1, kind="stable"), -1)


@primitive(linear="x", tf_name="GatherV2")
def take_along_(xp: ArrayModule, x: Array, indices: Array) -> Array:
    """y[…, j] = x[…, indices[…, j]]; the indices of a row are distinct."""
    return xp.take_along_axis(x, indices, -1)


take_along_.infer(lambda x, indices: x.reshaped(indices.shape))
take_along_.vjp(x=lambda g, x_spec, indices: put_along_(g, indices, length=x_spec.shape[-1]))


_INDICES = np.array([[2, 0, 1], [1, 3, 0]], np.int64)
take_along_.cases = [case((2, 4), _INDICES)]


@primitive(linear="x", tf_name="ScatterNd")
def put_along_(xp: ArrayModule, x: Array, indices: Array, *, length: int) -> Array:
    """Rows of `length` zeros with y[…, indices[…, j]] = x[…, j]; the indices are distinct."""
    # Where there are no elements, -1 could be any number of rows, and reshape refuses it.
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, 0)
    y = xp.zeros((*x.shape[:-1], length), x.dtype)
    # One write for all rows: the positions of each begin where its row does.
    flat = indices.reshape(rows.shape) + xp.arange(rows.shape[0])[:, None] * length
    y.reshape(-1)[flat.reshape(-1)] = rows.reshape(-1)
    return y


put_along_.infer(lambda x, indices, *, length: x.reshaped((*x.shape[:-1], length)))
put_along_.vjp(x=lambda g, indices: take_along_(g, indices))
put_along_.cases = [case((2, 3), _INDICES, length=4)]


@primitive(tf_name="Sort")
def sort_(xp: ArrayModule, x: Array, *, descending: bool = False) -> Array:
    """The elements of each row in ascending or descending order."""
    # Turned round behind: -x would not do for the lowest integer, nor for unsigned ones.
    y = xp.sort(x, axis=-1)
    return xp.flip(y, -1) if descending else y


sort_.infer(lambda x, **_: taken("sort", "real numbers", x))
sort_.vjp(x=lambda g, x, *, descending:
          put_along_(g, argsort_(x, descending=descending, dtype=dtypes.int64),
                     length=x.spec.shape[-1]))
sort_.cases = [case((2, 5)), case((4,), descending=True)]


@primitive(nondifferentiable=True, tf_name="Argsort")
def argsort_(xp: ArrayModule, x: Array, *, descending: bool, dtype: DType) -> Array:
    """The positions of the elements of each row in order. Not differentiable."""
    return _order(xp, x, descending).astype(dtype.np_dtype)


argsort_.infer(lambda x, *, dtype, **_: Spec(taken("argsort", "real numbers", x).shape, dtype))
argsort_.cases = [case((2, 5), descending=True, dtype=dtypes.int32)]


def _descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{name}: direction must be 'ASCENDING' or 'DESCENDING'; "
                         f"got {shown(direction)}")
    return direction == "DESCENDING"


def _last(name: str, values: TensorLike, axis: int) -> tuple[Tensor, tuple[int, ...] | None]:
    """The tensor with `axis` last, and the permutation that undoes it (None for none)."""
    x = convert(values)
    if not x.ndim:
        raise InvalidArgumentError(f"{name}: a scalar cannot be sorted; got {x.spec}")
    (at,) = normal_axes(name, as_int(axis, f"{name}: axis"), x.ndim)
    if at == x.ndim - 1:  # the usual case: no transpose, and none back
        return x, None
    perm = tuple(range(x.ndim))
    perm = (*perm[:at], x.ndim - 1, *perm[at + 1:-1], at)  # an exchange of two undoes itself
    return transpose_(x, perm=perm), perm


def _back(x: Tensor, perm: tuple[int, ...] | None) -> Tensor:
    return x if perm is None else transpose_(x, perm=perm)


def sort(values: TensorLike, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None,
         ) -> Tensor:
    """`values` sorted along `axis`; nan counts as the largest. The gradient is sorted back.

    Raises:
        InvalidArgumentError: a scalar, no such axis, or not real numbers.
        ValueError: `direction` is not 'ASCENDING' or 'DESCENDING'.
    """
    descending = _descending("sort", direction)
    x, perm = _last("sort", values, axis)
    return _back(sort_(x, descending=descending), perm)


def argsort(values: TensorLike, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False,
            name: str | None = None) -> Tensor:
    """The int32 positions that sort `values` along `axis`; equal values keep their order.

    Not differentiable. Raises as `sort`.
    """
    descending = _descending("argsort", direction)
    x, perm = _last("argsort", values, axis)
    return _back(argsort_(x, descending=descending, dtype=dtypes.int32), perm)


def _few_largest(x: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k largest of each row without sorting the row; the first of equals."""
    # Of elements equal to the k-th the first ones count, as in TensorFlow; a partition takes any.
    edge = np.partition(x, x.shape[-1] - k, axis=-1)[..., -k, None]
    above, level = x > edge, x == edge
    missing = k - above.sum(axis=-1, keepdims=True)
    chosen = above | (level & (np.cumsum(level, axis=-1) <= missing))
    places = np.nonzero(chosen)[-1].reshape(*x.shape[:-1], k)
    return np.take_along_axis(places, _order(np, np.take_along_axis(x, places, -1), True), -1)


@primitive(outputs="values indices", tf_name="TopKV2")
def top_k_(xp: ArrayModule, x: Array, *, k: int, dtype: DType = dtypes.int32) -> tuple[Array, ...]:
    """The k largest elements of each row in descending order, and their positions."""
    # A partition is linear, but takes longer for each element; nan has no place in its order.
    few = xp is np and 0 < 8 * k < x.shape[-1] and not (
        x.dtype.kind == "f" and bool(np.isnan(x).any()))
    order = _few_largest(x, k) if few else _order(xp, x, True)[..., :k]
    return xp.take_along_axis(x, order, -1), order.astype(dtype.np_dtype)


@top_k_.infer
def _(x: Spec, *, k: int, dtype: DType) -> tuple[Spec, Spec]:
    if not x.ndim or not 0 <= k <= x.shape[-1]:
        raise InvalidArgumentError(f"top_k: the last axis of {x} must hold at least k={k} >= 0 "
                                   f"elements")
    shape = (*taken("top_k", "real numbers", x).shape[:-1], k)
    return x.reshaped(shape), Spec(shape, dtype)


top_k_.vjp(x=lambda g, x_spec, indices: put_along_(g, indices, length=x_spec.shape[-1]))
top_k_.cases = [case((2, 5), k=3), case((40,), k=2)]


def top_k(input: TensorLike, k: int = 1, sorted: bool = True, index_type: DType = dtypes.int32,
          name: str | None = None) -> TopKV2:
    """The k largest elements along the last axis, in descending order, and their positions.

    Of equal elements the first is taken, and it gets the gradient.

    Raises:
        InvalidArgumentError: fewer than k elements, a negative k, or not real numbers.
    """
    x = convert(input)
    return TopKV2(*top_k_(x, k=as_int(k, "top_k: k"), dtype=as_dtype(index_type)))


def approx_max_k(operand: TensorLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True, name: str | None = None) -> ApproxTopK:
    """The k largest elements along an axis and their positions: exact, so its recall is 1.

    Raises:
        InvalidArgumentError: as `top_k`.
    """
    x, perm = _last("approx_max_k", operand, reduction_dimension)
    largest = top_k(x, k)
    return ApproxTopK(_back(largest.values, perm), _back(largest.indices, perm))


def approx_min_k(operand: TensorLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True, name: str | None = None) -> ApproxTopK:
    """The k smallest elements along an axis and their positions. Raises as `approx_max_k`."""
    largest = approx_max_k(s.negative(operand), k, reduction_dimension)
    return ApproxTopK(s.negative(largest.values), largest.indices)


def approx_top_k(input: TensorLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, is_max_k: bool = True,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
                 name: str | None = None) -> ApproxTopK:
    """`approx_max_k`, or `approx_min_k` when `is_max_k` is false."""
    return (approx_max_k if is_max_k else approx_min_k)(input, k, reduction_dimension)


@primitive(nondifferentiable=True, tf_name="ArgMax")
def arg_extreme_(xp: ArrayModule, x: Array, *, axis: int, largest: bool, dtype: DType) -> Array:
    """The position of the first largest or smallest element along `axis`."""
    # Of a vector NumPy gives a number, not an array.
    return xp.asarray((xp.argmax if largest else xp.argmin)(x, axis=axis)).astype(dtype.np_dtype)


arg_extreme_.on_cuda("kernels.reductions.arg_extreme")


@arg_extreme_.infer
def _(x: Spec, *, axis: int, largest: bool, dtype: DType) -> Spec:
    if not x.shape[axis]:
        raise InvalidArgumentError(f"argmax: axis {axis} of {x} is empty and has no extreme")
    if not dtype.is_integer:
        raise InvalidArgumentError(f"argmax: output_type must be an integer dtype; got {dtype!r}")
    if x.dtype.is_complex or x.dtype is dtypes.string:
        raise InvalidArgumentError(f"argmax takes real numbers or bools; got {x}")
    return Spec(x.shape[:axis] + x.shape[axis + 1:], dtype)


arg_extreme_.cases = [case((2, 5), axis=1, largest=True, dtype=dtypes.int64)]


def _arg_extreme(public: str, largest: bool, doc: str) -> Callable[..., Tensor]:
    def function(input: TensorLike, axis: Any = None, output_type: DTypeLike = dtypes.int64,
                 name: str | None = None) -> Tensor:
        x = convert(input)
        if not x.ndim:
            raise InvalidArgumentError(f"{public}: a scalar has no axis; got {x.spec}")
        # TensorFlow's default is the first axis; NumPy would take all.
        (at,) = normal_axes(public, 0 if axis is None else as_int(axis, f"{public}: axis"), x.ndim)
        return arg_extreme_(x, axis=at, largest=largest, dtype=as_dtype(output_type))

    return named(function, public, doc)


argmax = _arg_extreme("argmax", True, """\
The position of the largest element along `axis` (0 unless given), the first of equals.

    Not differentiable.

    Raises:
        InvalidArgumentError: a scalar, an empty axis, or no such axis.
    """)
argmin = _arg_extreme("argmin", False, "The position of the smallest element along `axis` (0 "
                                       "unless given). See `argmax`.")


@primitive(nondifferentiable=True, tf_name="LowerBound")
def searchsorted_(xp: ArrayModule, rows: Array, values: Array, *, side: str, dtype: DType) -> Array:
    """Where each value would be inserted in its row. Not differentiable."""
    count = math.prod(rows.shape[:-1])
    flat, wanted = rows.reshape(count, rows.shape[-1]), values.reshape(count, values.shape[-1])
    # NumPy's searchsorted takes one sorted vector at a time.
    parts = [xp.searchsorted(row, v, side=side) for row, v in zip(flat, wanted)]
    y = xp.stack(parts) if parts else xp.zeros((0,), np.int64)  # stack takes no empty list
    return y.reshape(values.shape).astype(dtype.np_dtype)


@searchsorted_.infer
def _(rows: Spec, values: Spec, *, side: str, dtype: DType) -> Spec:
    if rows.dtype is not values.dtype or not rows.ndim or not values.ndim or (
            rows.shape[:-1] != values.shape[:-1]):
        raise InvalidArgumentError(f"searchsorted: sequences and values must agree in dtype and in "
                                   f"all axes but the last; got {rows} and {values}")
    return Spec(values.shape, dtype)


searchsorted_.cases = [case(np.array([1.0, 3.0, 5.0]), np.array([0.5, 3.0]), side="left",
                            dtype=dtypes.int32)]


def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left",
                 out_type: object = dtypes.int32, name: str | None = None) -> Tensor:
    """Where each of `values` [*B, m] would be inserted in its `sorted_sequence` [*B, n].

    Before equal elements for side 'left', behind them for 'right'. Not differentiable.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit.
        ValueError: another `side`.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; got {shown(side)}")
    rows = convert(sorted_sequence)
    x = convert_like(values, rows._t, "searchsorted")
    return searchsorted_(rows, x, side=side, dtype=as_dtype(out_type))


def bucketize(*, input: TensorLike, boundaries: TensorLike, name: str | None = None) -> Tensor:
    """How many of the sorted `boundaries` are <= each number of `input`: int32, of its shape.

    Not differentiable.

    Raises:
        TypeError: `boundaries` is no list.
        InvalidArgumentError: they are not sorted, or `input` is not of int32, int64, float32 or
            float64.
    """
    if not isinstance(boundaries, (list, tuple)):
        raise TypeError(f"Bucketize: boundaries must be a list of numbers; got "
                        f"{shown(boundaries)}")
    x = convert(input)
    if x.dtype.name not in ("int32", "int64", "float32", "float64"):
        raise InvalidArgumentError(f"Bucketize takes int32, int64, float32 or float64; got "
                                   f"{x.spec}. Use tf.cast")
    # TensorFlow's attribute is a list of float32.
    edges = np.array([as_float(b, "Bucketize: boundaries") for b in boundaries], np.float32)
    if bool((edges[1:] < edges[:-1]).any()):
        raise InvalidArgumentError(f"Bucketize: the boundaries must be sorted; got "
                                   f"{shown(boundaries)}")
    # int64 beside float32 boundaries: float64 tells apart what either holds, up to 2**53.
    wide = cast(x, dtypes.float64) if x.dtype.is_integer else x
    flat = reshape_(wide, shape=(math.prod(x.spec.shape),))
    rows = convert(edges.astype(wide.dtype.np_dtype), None, x._t.device)
    return reshape_(searchsorted_(rows, flat, side="right", dtype=dtypes.int32), shape=x.spec.shape)


@primitive(nondifferentiable=True)
def in_top_k_(xp: ArrayModule, scores: Array, target: Array, *, k: int) -> Array:
    """Whether fewer than k scores of a row exceed that of its target."""
    valid = (target >= 0) & (target < scores.shape[1]) & xp.isfinite(scores).all(axis=1)
    own = xp.take_along_axis(scores, xp.where(valid, target, 0)[:, None].astype(np.int64), 1)
    return valid & ((scores > own).sum(axis=1) < k)


@in_top_k_.defined
def _(scores: Any, target: Spec, *, k: int) -> Spec:
    chosen = is_class(target, scores.spec.shape[1])
    own = reduce_sum_(s.where(chosen, scores, 0.0), axis=(1,), keepdims=True)
    above = reduce_sum_(cast(s.greater(scores, own), dtypes.int32), axis=(1,))
    finite = reduce_all_(s.is_finite(scores), axis=(1,))
    return s.logical_and(s.logical_and(s.less(above, k), finite), reduce_any_(chosen, axis=(1,)))


in_top_k_.infer(lambda scores, target, **_: Spec(target.shape, dtypes.bool_))
in_top_k_.cases = [case((4, 3), ints(4, below=3), k=2)]


@at_home
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int, name: str | None = None,
             ) -> Tensor:
    """Whether fewer than k predictions [n, classes] exceed that of the target [n]: bool [n].

    Targets out of range and rows with non-finite predictions give False.

    Raises:
        InvalidArgumentError: shapes do not fit.
    """
    scores = convert(predictions)
    target = index_tensor(targets, "in_top_k", scores)
    if scores.ndim != 2 or target.spec.shape != scores.spec.shape[:1]:
        raise InvalidArgumentError(f"in_top_k: predictions must be [n, classes] and targets [n]; "
                                   f"got {scores.spec} and {target.spec}")
    return in_top_k_(scores, target, k=as_int(k, "in_top_k: k"))


# ---------------------------------------------------------------- sequences in order
def _neighbours(public: str, compare: Callable[..., Any], doc: str) -> Callable[..., Tensor]:
    """The function that says whether `compare` holds between all elements that follow each
    other."""
    def function(x: TensorLike, name: str | None = None) -> Tensor:
        tensor = convert(x)
        if not (tensor.dtype.is_floating or tensor.dtype.is_integer):
            raise TypeError(f"{public} takes real numbers; got {tensor.spec}")
        n = math.prod(tensor.spec.shape)
        if n < 2:
            return convert(True, dtypes.bool_, tensor._t.device)
        flat = reshape_(tensor, shape=(n,))
        before, _ = split_(flat, sizes=(n - 1, 1), axis=0)
        _, after = split_(flat, sizes=(1, n - 1), axis=0)
        return reduce_all_(compare(before, after), axis=(0,))

    return named(function, public, f"{doc} the one before it in row-major order.\n\n"
                                   f"    Raises:\n        TypeError: no real numbers.\n    ")


is_non_decreasing = _neighbours("is_non_decreasing", s.less_equal,
                                "Whether no element is smaller than")
is_strictly_increasing = _neighbours("is_strictly_increasing", s.less,
                                     "Whether every element is larger than")


# ---------------------------------------------------------------- permutations
@primitive(nondifferentiable=True, tf_name="InvertPermutation")
def invert_permutation_(xp: ArrayModule, x: Array) -> Array:
    """y with y[x[i]] = i."""
    n = x.size
    # On a GPU the answer would have to be waited for.
    if xp is np and not np.array_equal(np.sort(x), np.arange(n)):
        raise InvalidArgumentError(f"invert_permutation: x must hold each of 0 … {n - 1} once; got "
                                   f"{shown(x.tolist())}")
    y = xp.zeros_like(x)
    y[x] = xp.arange(n, dtype=x.dtype)
    return y


@invert_permutation_.infer
def _(x: Spec) -> Spec:
    if x.ndim != 1 or x.dtype not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(f"invert_permutation takes an int32 or int64 vector; got {x}")
    return x


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """y with y[x[i]] = i, for a permutation x of 0 … n - 1.

    Raises:
        InvalidArgumentError: `x` is no vector of integers, or no permutation.
    """
    return invert_permutation_(convert(x))

"""Sums, means, extremes, products and logical reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import as_dtype, bool_, float32, running_type
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes, reduced
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics.sums import integer_mean, total
from gtape.opdef.numpy_code import axes_to_sum
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.arguments import axes_of, named, taken
from gtape.ops.elementwise.scalars import divide, equal, logical_not, not_equal
from gtape.ops.shape.casting import cast_
from gtape.ops.shape.layout import broadcast_to_, reshape_, sum_to_, transpose_
from gtape.ops.shape.packing import concat_, split_, stack_, unstack_

Axes = tuple[int, ...]


def prepared(name: str, value: TensorLike, axis: IntsLike | None) -> tuple[Tensor, Axes]:
    """The input as a tensor and its axes as distinct non-negative numbers."""
    x = value if isinstance(value, Tensor) else convert(
        value.to_dense() if hasattr(value, "to_dense") else value)
    return x, normal_axes(name, axes_of(axis), x.ndim)


def kept_shape(x: Spec, axis: Axes) -> tuple[int, ...]:
    """The shape of the reduction with its axes kept as length 1."""
    return reduced(x.shape, axis, True)


def number_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    """The result's spec. Raises InvalidArgumentError for bools and strings."""
    taken(name, "numbers", x, ". Write tf.cast(x, tf.int32) first")
    return x.reshaped(reduced(x.shape, axis, keepdims))


def reduction(op: Primitive, refuses: str, doc: str) -> Callable[..., Any]:
    """The public function of an op over axes, which composites can stand for; `refuses` says what
    it takes none of."""
    public = op.name.rstrip("_")

    def function(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                 name: str | None = None) -> Tensor:
        x, axes = prepared(public, input_tensor, axis)
        return op(x, axis=axes, keepdims=bool(keepdims))

    raises = f"Raises:\n        InvalidArgumentError: no such axis, or {refuses}.\n    "
    return takes_composites(named(function, public, f"{doc}\n\n    {raises}", op._fn.__module__))


@primitive(linear="x", tf_name="Sum")
def reduce_sum_(xp: ArrayModule, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Σ x over `axis`."""
    return total(x, axis, keepdims)


reduce_sum_.on_cuda("kernels.reductions.reduce", operation="Sum")
reduce_sum_.infer(lambda x, *, axis, keepdims: number_spec("reduce_sum", x, axis, keepdims))
reduce_sum_.vjp(x=lambda g, x_spec, *, axis: broadcast_in_dim_(g, shape=x_spec.shape, axis=axis))


@primitive(linear="x", tf_name="BroadcastTo")
def broadcast_in_dim_(xp: ArrayModule, x: Any, *, shape: tuple[int, ...], axis: Axes) -> Any:
    """x repeated along the axes that a sum over `axis` took away: the sum's adjoint."""
    kept = x.reshape([1 if i in axis else n for i, n in enumerate(shape)])
    return broadcast_to_.value(xp, kept, shape=shape)


broadcast_in_dim_.defined(lambda x, *, shape, axis: broadcast_to_(
    reshape_(x, shape=tuple(1 if i in axis else n for i, n in enumerate(shape))), shape=shape))
broadcast_in_dim_.literal = True
broadcast_in_dim_.infer(lambda x, *, shape, **_: x.reshaped(shape))
broadcast_in_dim_.vjp(x=lambda g, x_spec, *, axis:
                      reshape_(reduce_sum_(g, axis=axis, keepdims=True), shape=x_spec.shape))
broadcast_in_dim_.cases = [case((2, 1), shape=(2, 3), axis=(1,)),
                           case((3,), shape=(2, 3, 4), axis=(0, 2))]


# Said here, for the layout of values is declared before their sums.
sum_to_.defined(lambda x, *, shape: reshape_(
    reduce_sum_(x, axis=axes_to_sum(x.spec.shape, shape)[0]), shape=shape))
sum_to_.literal = True

CASES = [case((2, 3, 4), axis=(0, 2)), case((3, 4), axis=(1,), keepdims=True), case((3,), axis=())]
reduce_sum_.cases = CASES
reduce_sum = reduction(reduce_sum_, refuses="bools",
                       doc="Σ x over `axis` (all axes when None; none when []).")


def count_of(x: Spec, axis: Axes) -> int:
    return math.prod(x.shape[a] for a in axis)


@primitive(linear="x", tf_name="Mean")
def reduce_mean_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Σ x / n over `axis`; for integers exactly that, rounded towards zero."""
    if x.dtype.kind in "iu":
        # A float64 mean would lose digits of int64, and an int64 sum may overflow.
        return integer_mean(xp, x, axis, keepdims)
    count = math.prod(x.shape[a] for a in axis)
    if x.dtype.itemsize == 2:  # their sum may be out of range
        wide = total(x.astype(np.float32), axis, keepdims)
        return xp.asarray(wide / (count or np.nan)).astype(x.dtype)
    # nan of no elements, as TensorFlow gives, without a division by 0.
    return total(x, axis, keepdims) / (count or np.nan)


@reduce_mean_.defined
def _(x: Any, *, axis: Axes, keepdims: bool) -> Spec:
    # Of floats: the mean of integers is exact even where their sum does not fit.
    wide = cast_(x, dtype=float32) if x.dtype.size == 2 else x
    # The mean of nothing is nan.
    return cast_(divide(reduce_sum_(wide, axis=axis, keepdims=keepdims),
                        count_of(x.spec, axis) or np.nan), dtype=x.dtype)


reduce_mean_.literal = True
reduce_mean_.on_cuda("kernels.reductions.mean")
reduce_mean_.infer(lambda x, *, axis, keepdims: number_spec("reduce_mean", x, axis, keepdims))
reduce_mean_.vjp(x=lambda g, x_spec, *, axis: broadcast_in_dim_(g / max(count_of(x_spec, axis), 1),
                                                                shape=x_spec.shape, axis=axis))
reduce_mean_.cases = CASES
reduce_mean = reduction(reduce_mean_, refuses="bools",
                        doc="The mean over `axis`; nan for no elements. That of integers is exact, "
                            "rounded towards zero,\n    and 0 for none.")


def _extreme_grad(g: Tensor, x: Tensor, y: Tensor, axis: Axes) -> Tensor:
    """Ties share the gradient equally."""
    kept = kept_shape(x.spec, axis)
    hit = cast_(equal(x, reshape_(y, shape=kept)), dtype=x.dtype)
    # TensorFlow's subgradient: all that are equal count alike.
    shared = hit / reduce_sum_(hit, axis=axis, keepdims=True)
    return shared * reshape_(g, shape=kept)


def extreme(function: Any, xp: ArrayModule, x: Array, axis: Axes, keepdims: bool, empty: float,
            ) -> Any:
    """`xp.max` or `xp.min`, and `empty` for no elements; CuPy's take no initial value."""
    # NumPy raises for an empty maximum; TensorFlow gives the identity of the operation.
    if any(x.shape[a] == 0 for a in axis):
        return xp.full(reduced(x.shape, axis, keepdims), empty, dtype=x.dtype)
    return function(x, axis=axis, keepdims=keepdims)


def _extremum(which: str, function: Callable[[ArrayModule], Any], infinity: float) -> Primitive:
    """The op of the largest ("max") or smallest ("min") elements; of none it is `infinity`."""
    name = f"reduce_{which}"

    def reduce(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Any:
        empty = infinity
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            empty = limits.min if infinity < 0 else limits.max
        return extreme(function(xp), xp, x, axis, keepdims, empty)

    op: Primitive = primitive(named(reduce, f"{name}_", f"y = {which} x over `axis`."),
                              tf_name=which.title())
    op.on_cuda("kernels.reductions.reduce", operation=which.title())
    op.infer(lambda x, *, axis, keepdims:
             taken(name, "real numbers", x).reshaped(reduced(x.shape, axis, keepdims)))
    op.vjp(x=lambda g, x, y, *, axis: _extreme_grad(g, x, y, axis))
    op.cases = CASES
    return op


reduce_max_ = _extremum("max", lambda xp: xp.max, -np.inf)
reduce_min_ = _extremum("min", lambda xp: xp.min, np.inf)
reduce_max, reduce_min = (
    reduction(op, refuses="not real numbers",
              doc=f"The {word} element over `axis`; ties share the gradient equally; {empty} for "
                  f"no elements.")
    for op, word, empty in ((reduce_max_, "largest", "-inf"), (reduce_min_, "smallest", "inf")))


# ---------------------------------------------------------------- products
@primitive(tf_name="Prod")
def reduce_prod_(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
    """y = Π x over `axis`."""
    # Two-byte floats are multiplied in float32, as they are summed.
    wide = x.astype(running_type(x.dtype), copy=False)
    return xp.prod(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype).astype(
        x.dtype, copy=False)


reduce_prod_.on_cuda("kernels.reductions.reduce", operation="Prod")
reduce_prod_.infer(lambda x, *, axis, keepdims: number_spec("reduce_prod", x, axis, keepdims))


@reduce_prod_.vjp("x")
def _(g: Tensor, x: Any, *, axis: Axes) -> Tensor:
    if not axis:
        return g
    shape = x.spec.shape
    rest = tuple(i for i in range(len(shape)) if i not in axis)
    order = (*rest, *axis)
    outer = tuple(shape[i] for i in rest)
    flat = reshape_(transpose_(x, perm=order), shape=(*outer, count_of(x.spec, axis)))
    others = reshape_(products_of_others(flat), shape=tuple(shape[i] for i in order))
    back = transpose_(others, perm=tuple(int(i) for i in np.argsort(order)))
    return back * reshape_(g, shape=kept_shape(x.spec, axis))


reduce_prod_.cases = CASES


def products_of_others(x: Tensor) -> Tensor:
    """For each element the product of all others along the last axis, without dividing. Pairs are
    multiplied, the others of each pair found in the same way, and each element of a pair completed
    by its partner: O(n) products, exact where elements are 0, differentiable."""
    *outer, n = x.spec.shape
    if n < 2:
        return _ones((*outer, n), x)
    if n % 2:
        # A 1 makes pairs of all, and changes no product.
        padded = concat_(x, _ones((*outer, 1), x), axis=len(outer))
        return split_(products_of_others(padded), sizes=(n, 1), axis=len(outer))[0]
    pairs = reshape_(x, shape=(*outer, n // 2, 2))
    a, b = unstack_(pairs, axis=len(outer) + 1)
    if n > 2:
        rest = products_of_others(a * b)
        a, b = rest * a, rest * b
    return reshape_(stack_(b, a, axis=len(outer) + 1), shape=(*outer, n))


def _ones(shape: tuple[int, ...], like: Tensor) -> EagerTensor:
    return EagerTensor(like._t.xp.ones(shape, like.dtype.np_dtype), like._t)


reduce_prod = reduction(reduce_prod_, refuses="bools",
                        doc="Π x over `axis` (all axes when None); 1 for no elements. The gradient "
                            "is exact at zeros.")


# ---------------------------------------------------------------- logical reductions
def _bool_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    if not x.dtype.is_bool:
        raise InvalidArgumentError(f"{name} takes bools; got {x}. Write a comparison such as "
                                   f"x > 0, or tf.cast(x, tf.bool)")
    return Spec(reduced(x.shape, axis, keepdims), bool_)


def _quantifier(which: str, function: Callable[[ArrayModule], Any], operation: str) -> Primitive:
    """The op that says whether "all" or "any" are true: on GPUs an extreme of 0 and 1."""
    name = f"reduce_{which}"

    def reduce(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
        return function(xp)(x, axis=axis, keepdims=keepdims)

    op: Primitive = primitive(named(reduce, f"{name}_", f"y = whether {which} of x are true over "
                                                        f"`axis`."),
                              nondifferentiable=True, tf_name=which.title())
    op.on_cuda("kernels.reductions.reduce", operation=operation)
    op.infer(lambda x, *, axis, keepdims: _bool_spec(name, x, axis, keepdims))
    some = np.array([[True, False, True], [True, True, True]])
    op.cases = [case(some, axis=(1,)), case(some, axis=(0, 1), keepdims=True)]
    return op


reduce_all_ = _quantifier("all", lambda xp: xp.all, "Min")
reduce_any_ = _quantifier("any", lambda xp: xp.any, "Max")
reduce_all = reduction(reduce_all_, refuses="not bools",
                       doc="Whether all elements are true over `axis`; true for no elements.")
reduce_any = reduction(reduce_any_, refuses="not bools",
                       doc="Whether any element is true over `axis`; false for no elements.")


# ---------------------------------------------------------------- counts
def count_nonzero(input: TensorLike, axis: IntsLike | None = None, keepdims: bool | None = None,
                  dtype: object = "int64", name: str | None = None) -> Tensor:
    """How many elements are not 0 (or not an empty string) over `axis`. Not differentiable.

    Raises:
        InvalidArgumentError: no such axis.
    """
    x, axes = prepared("count_nonzero", input, axis)
    nothing: Any = "" if x.dtype.name == "string" else 0
    hit = x if x.dtype.is_bool else not_equal(x, nothing)
    return reduce_sum_(cast_(hit, dtype=as_dtype(dtype)), axis=axes, keepdims=bool(keepdims))


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The share of zeros among the elements, float32; nan for no elements."""
    x, axes = prepared("zero_fraction", value, None)
    zeros = logical_not(x) if x.dtype.is_bool else equal(x, 0)
    return reduce_mean_(cast_(zeros, dtype=float32), axis=axes)

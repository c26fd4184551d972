"""Products, logical reductions, log-sum-exp, variances and counts over axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.composite_tensor import takes_composites
from gtape.core.dtypes import as_dtype, bool_, float32, float64, running_type
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, reduced
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics.sums import total
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise import scalars as s
from gtape.ops.reductions.reductions import (
    Axes,
    count_of,
    kept_shape,
    number_spec,
    prepared,
    reduce_max_,
    reduce_mean_,
    reduce_sum_,
)
from gtape.ops.shape.casting import cast_
from gtape.ops.shape.layout import reshape_, transpose_
from gtape.ops.shape.packing import concat_, split_, stack_, unstack_

_CASES = [case((2, 3, 4), axis=(0, 2)), case((3, 5), axis=(1,), keepdims=True), case((3,), axis=())]

root = s.scalar_op("root(x)", numpy="sqrt", cuda="sqrt(x)", domain=(0.2, 3.0),
                   doc="√x with slope 0 at 0, a subgradient of norms that is finite.",
                   d_x=lambda g, y: s.divide_no_nan(0.5 * g, y))


# ---------------------------------------------------------------- products
@primitive(tf_name="Prod")
def reduce_prod_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Π x over `axis`."""
    wide = x.astype(running_type(x.dtype), copy=False)
    return xp.prod(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype).astype(
        x.dtype, copy=False)


reduce_prod_.on_cuda("kernels.reductions.reduce", operation="Prod")


@reduce_prod_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return number_spec("reduce_prod", x, axis, keepdims)


@reduce_prod_.vjp("x")
def _(g: Any, x: Any, *, axis: Axes) -> Any:
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


reduce_prod_.cases = _CASES


def products_of_others(x: Tensor) -> Tensor:
    """For each element the product of all others along the last axis, without dividing.

    Pairs are multiplied, the others of each pair found in the same way, and each element of a pair
    completed by its partner: O(n) products, exact where elements are 0, differentiable.
    """
    *outer, n = x.spec.shape
    if n < 2:
        return _ones((*outer, n), x)
    if n % 2:
        padded = concat_(x, _ones((*outer, 1), x), axis=len(outer))
        return split_(products_of_others(padded), sizes=(n, 1), axis=len(outer))[0]
    pairs = reshape_(x, shape=(*outer, n // 2, 2))
    a, b = unstack_(pairs, axis=len(outer) + 1)
    if n > 2:
        rest = products_of_others(a * b)
        a, b = rest * a, rest * b  # type: ignore[operator]
    return reshape_(stack_(b, a, axis=len(outer) + 1), shape=(*outer, n))


def _ones(shape: tuple[int, ...], like: Tensor) -> EagerTensor:
    return EagerTensor(like._t.xp.ones(shape, like.dtype.np_dtype), like._t)


@takes_composites
def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                name: str | None = None) -> Tensor:
    """Π x over `axis` (all axes when None); 1 for no elements. The gradient is exact at zeros.

    Raises:
        InvalidArgumentError: no such axis, or bools.
    """
    x, axes = prepared("reduce_prod", input_tensor, axis)
    return reduce_prod_(x, axis=axes, keepdims=bool(keepdims))


# ---------------------------------------------------------------- logic
def _bool_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    if not x.dtype.is_bool:
        raise InvalidArgumentError(f"{name} takes bools; got {x}. Write a comparison such as "
                                   f"x > 0, or tf.cast(x, tf.bool)")
    return Spec(reduced(x.shape, axis, keepdims), bool_)


@primitive(nondifferentiable=True, tf_name="All")
def reduce_all_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = whether all of x are true over `axis`."""
    return xp.all(x, axis=axis, keepdims=keepdims)


reduce_all_.on_cuda("kernels.reductions.reduce", operation="Min")


@reduce_all_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return _bool_spec("reduce_all", x, axis, keepdims)


@primitive(nondifferentiable=True, tf_name="Any")
def reduce_any_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = whether any of x is true over `axis`."""
    return xp.any(x, axis=axis, keepdims=keepdims)


reduce_any_.on_cuda("kernels.reductions.reduce", operation="Max")


@reduce_any_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    return _bool_spec("reduce_any", x, axis, keepdims)


_SOME = np.array([[True, False, True], [True, True, True]])
reduce_all_.cases = [case(_SOME, axis=(1,)), case(_SOME, axis=(0, 1), keepdims=True)]
reduce_any_.cases = reduce_all_.cases


@takes_composites
def reduce_all(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """Whether all elements are true over `axis`; true for no elements.

    Raises:
        InvalidArgumentError: no such axis, or not bools.
    """
    x, axes = prepared("reduce_all", input_tensor, axis)
    return reduce_all_(x, axis=axes, keepdims=bool(keepdims))


@takes_composites
def reduce_any(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """Whether any element is true over `axis`; false for no elements.

    Raises:
        InvalidArgumentError: no such axis, or not bools.
    """
    x, axes = prepared("reduce_any", input_tensor, axis)
    return reduce_any_(x, axis=axes, keepdims=bool(keepdims))


# ---------------------------------------------------------------- log-sum-exp
def _scaled(xp: Any, x: Any, axis: Axes) -> tuple[Any, Any, Any]:
    """eˣ⁻ᵐ, its sum over `axis`, and m: the largest element where that is finite, else 0."""
    kept = reduced(x.shape, axis, True)
    top = xp.max(x, axis=axis, keepdims=True) if x.size else xp.zeros(kept, x.dtype)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    terms = xp.exp(x - top)
    wide = terms.astype(running_type(x.dtype), copy=False)
    return terms, total(wide, axis, True), top


@primitive(tf_name="Softmax")
def share_(xp: Any, x: Any, *, axis: Axes) -> Any:
    """y = eˣ / Σ eˣ over `axis`, and 0 where all elements are -inf."""
    terms, total, _ = _scaled(xp, x, axis)
    return (terms / xp.where(total == 0, xp.ones_like(total), total)).astype(x.dtype)


def exponentials(x: Any, axis: Axes) -> tuple[Any, Any, Any]:
    """`_scaled`, written in ops."""
    top = reduce_max_(x, axis=axis, keepdims=True)
    # Where all are -inf, or one is inf, the difference would be nan.
    top = s.where(s.is_finite(top), top, 0.0)
    terms = s.exp(s.subtract(x, top))
    return terms, reduce_sum_(terms, axis=axis, keepdims=True), top


@share_.defined
def _(x: Any, *, axis: Axes) -> Any:
    terms, sums, _ = exponentials(x, axis)
    return s.divide(terms, s.where(s.equal(sums, 0.0), 1.0, sums))


@share_.infer
def _(x: Spec, *, axis: Axes) -> Spec:
    return x


@share_.vjp("x")
def _(g: Any, y: Any, *, axis: Axes) -> Any:
    weighed = g * y
    return weighed - y * reduce_sum_(weighed, axis=axis, keepdims=True)


share_.cases = [case((2, 3, 4), axis=(0, 2)), case((3,), axis=())]


@primitive(tf_name="LogSumExp")
def reduce_logsumexp_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = log Σ eˣ over `axis`, with the largest element taken out first."""
    _, total, top = _scaled(xp, x, axis)
    made = (xp.log(total) + top).astype(x.dtype)
    return made if keepdims else made.reshape(reduced(x.shape, axis, False))


@reduce_logsumexp_.defined
def _(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    _, sums, top = exponentials(x, axis)
    y = s.add(s.log(sums), top)
    return y if keepdims else reshape_(y, shape=reduced(x.spec.shape, axis, False))


@reduce_logsumexp_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    if not x.dtype.is_floating:
        raise InvalidArgumentError(f"reduce_logsumexp takes real floating tensors; got {x}. "
                                   f"Write tf.cast(x, tf.float32)")
    return Spec(reduced(x.shape, axis, keepdims), x.dtype)


reduce_logsumexp_.on_cuda("kernels.softmax.reduce_logsumexp")


@reduce_logsumexp_.vjp("x")
def _(g: Any, x: Any, *, axis: Axes) -> Any:
    return logsumexp_grad_(g, x, axis=axis)


@composite
def logsumexp_grad_(g: Any, x: Any, *, axis: Axes) -> Any:
    """g eˣ / Σ eˣ over `axis`, for g with or without the axes."""
    return reshape_(g, shape=kept_shape(x.spec, axis)) * share_(x, axis=axis)


logsumexp_grad_.on_cuda("kernels.softmax.reduce_logsumexp_grad")


logsumexp_grad_.cases = [case((2,), (2, 3), axis=(1,)), case((1, 1, 4), (2, 3, 4), axis=(0, 1))]


reduce_logsumexp_.cases = _CASES


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                     name: str | None = None) -> Tensor:
    """log Σ eˣ over `axis`, without overflow; -inf for no elements.

    Where all elements are -inf the gradient is 0.

    Raises:
        InvalidArgumentError: no such axis, or not real floating.
    """
    x, axes = prepared("reduce_logsumexp", input_tensor, axis)
    return reduce_logsumexp_(x, axis=axes, keepdims=bool(keepdims))


# ---------------------------------------------------------------- spread and length
def squared_length(x: Any) -> Any:
    """|x|², real."""
    if not x.dtype.is_complex:
        return s.square(x)
    return s.add(s.square(s.real_part(x)), s.square(s.imag_part(x)))


@primitive(tf_name="Variance", holomorphic=False)
def reduce_variance_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = Σ |x - mean|² / n over `axis`, real."""
    count = math.prod(x.shape[a] for a in axis)
    wide = x.astype(running_type(x.dtype), copy=False)
    centred = wide - total(wide, axis, True) / (count or np.nan)
    squares = (centred * xp.conj(centred)).real
    made = total(squares, axis, keepdims)
    return xp.asarray(made / (count or np.nan)).astype(x.real.dtype)


reduce_variance_.on_cuda("kernels.variances.variance")


@reduce_variance_.defined
def _(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    centred = s.subtract(x, reduce_mean_(x, axis=axis, keepdims=True))
    squares = squared_length(centred)
    return reduce_mean_(squares, axis=axis, keepdims=keepdims)


@reduce_variance_.infer
def _(x: Spec, *, axis: Axes, keepdims: bool) -> Spec:
    if not x.dtype.is_differentiable:
        raise InvalidArgumentError(f"reduce_variance takes floating or complex tensors; got {x}. "
                                   f"Write tf.cast(x, tf.float32)")
    return Spec(reduced(x.shape, axis, keepdims), x.dtype.real_dtype)


@reduce_variance_.vjp("x")
def _(g: Any, x: Any, *, axis: Axes) -> Any:
    factor = 2.0 / max(count_of(x.spec, axis), 1)
    spread = reshape_(g, shape=kept_shape(x.spec, axis)) * factor
    if x.dtype.is_complex:
        spread = cast_(spread, dtype=x.dtype)
    return spread * (x - reduce_mean_(x, axis=axis, keepdims=True))


reduce_variance_.cases = _CASES


@takes_composites
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                    name: str | None = None) -> Tensor:
    """The population variance Σ |x - mean|² / n over `axis`; nan for no elements.

    Raises:
        InvalidArgumentError: no such axis, or integers.
    """
    x, axes = prepared("reduce_variance", input_tensor, axis)
    return reduce_variance_(x, axis=axes, keepdims=bool(keepdims))


@takes_composites
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """The population standard deviation over `axis`; its gradient is 0 where it is 0.

    Raises:
        InvalidArgumentError: no such axis, or integers.
    """
    return root(reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                          name: str | None = None) -> Tensor:
    """√(Σ |x|²) over `axis`, in the dtype of x; its gradient is 0 where it is 0.

    Raises:
        InvalidArgumentError: no such axis, or bools.
    """
    x, axes = prepared("reduce_euclidean_norm", input_tensor, axis)
    if x.dtype.is_complex:
        squares = s.square(s.real_part(x)) + s.square(s.imag_part(x))
        return cast_(root(reduce_sum_(squares, axis=axes, keepdims=bool(keepdims))), dtype=x.dtype)
    if x.dtype.is_integer:
        wide = cast_(x, dtype=float64)
        total = reduce_sum_(wide * wide, axis=axes, keepdims=bool(keepdims))
        return cast_(root(total), dtype=x.dtype)
    return root(reduce_sum_(s.square(x), axis=axes, keepdims=bool(keepdims)))


# ---------------------------------------------------------------- counts
def count_nonzero(input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = "int64",
                  name: str | None = None) -> Tensor:
    """How many elements are not 0 (or not an empty string) over `axis`. Not differentiable.

    Raises:
        InvalidArgumentError: no such axis.
    """
    x, axes = prepared("count_nonzero", input, axis)
    nothing: Any = "" if x.dtype.name == "string" else 0
    hit = x if x.dtype.is_bool else s.not_equal(x, nothing)
    return reduce_sum_(cast_(hit, dtype=as_dtype(dtype)), axis=axes, keepdims=bool(keepdims))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros among the elements, float32; nan for no elements."""
    x, axes = prepared("zero_fraction", value, None)
    zeros = s.logical_not(x) if x.dtype.is_bool else s.equal(x, 0)
    return reduce_mean_(cast_(zeros, dtype=float32), axis=axes)

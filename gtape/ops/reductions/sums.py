"""Sums of whole tensors, and tensors scaled by a number."""

from __future__ import annotations

import functools
from typing import Any, SupportsFloat

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import as_dtype, running_type
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import case
from gtape.core.spec import Spec, TensorShape, reduced
from gtape.core.tensor import Tensor
from gtape.numerics.sums import total
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_tensors, one_dtype, taken
from gtape.ops.elementwise import scalars as s
from gtape.ops.reductions.reductions import (
    CASES,
    Axes,
    kept_shape,
    prepared,
    reduce_max_,
    reduce_sum_,
)
from gtape.ops.shape.layout import reshape_


@primitive(linear="values", tf_name="AddN")
def add_n_(xp: Any, *values: object) -> Any:
    """y = Σ of the tensors."""
    # A new array, into which the others are added: one allocation for any number of tensors.
    total = xp.add(values[0], values[1])
    for value in values[2:]:
        # Of rank 0 NumPy's sum is a number, into which nothing can be added.
        total = xp.add(total, value, out=total) if total.ndim else total + value
    return total


@add_n_.infer
def _(*values: Spec) -> Spec:
    one_dtype("add_n", values)
    if any(v.shape != values[0].shape for v in values):
        raise InvalidArgumentError(f"add_n: the tensors must have one shape; got "
                                   f"{', '.join(map(str, values))}. Nothing is broadcast: use +")
    return taken("add_n", "numbers", values[0])


add_n_.defined(lambda *values: functools.reduce(s.add, values))
add_n_.literal = True
add_n_.vjp(values=lambda g, values_spec: [g] * len(values_spec))
add_n_.cases = [case((2, 3), (2, 3), (2, 3)), case((), ())]


def _dense(value: TensorLike) -> Any:
    return value.to_dense() if isinstance(value, IndexedSlices) else value


@takes_composites
def add_n(inputs: object, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape and dtype; IndexedSlices count as dense.

    A list of one tensor gives that very tensor.

    Raises:
        ValueError: no list, or an empty one.
        InvalidArgumentError: shapes or dtypes differ.
    """
    # A scalar tensor has __iter__ too, which raises only when called.
    if not hasattr(inputs, "__iter__") or getattr(inputs, "ndim", 1) == 0:
        raise ValueError(f"add_n takes a list of tensors; got {shown(inputs)}")
    values = [_dense(value) for value in inputs]
    if not values:
        raise ValueError("add_n needs at least one tensor; got an empty list")
    tensors = as_tensors(values, "add_n")
    return tensors[0] if len(tensors) == 1 else add_n_(*tensors)


def accumulate_n(inputs: TensorLike, shape: IntsLike | None = None, tensor_dtype: object = None,
                 name: str | None = None) -> Tensor:
    """`add_n`, with the shape and dtype checked where given.

    Raises:
        ValueError: no list, an empty one, or another shape or dtype than asked for.
        InvalidArgumentError: shapes or dtypes differ.
    """
    total = add_n(inputs)
    if shape is not None and not TensorShape(shape).is_compatible_with(total.shape):
        raise ValueError(f"accumulate_n: the tensors have shape {total.shape}, which does not fit "
                         f"{TensorShape(shape)}")
    if tensor_dtype is not None and total.dtype != as_dtype(tensor_dtype):
        raise ValueError(f"accumulate_n: the tensors are {total.dtype!r}, not {tensor_dtype!r}; "
                         f"use tf.cast")
    return total


def scalar_mul(scalar: SupportsFloat, x: TensorLike, name: str | None = None,
               ) -> IndexedSlices | Tensor:
    """`scalar` times a tensor or an IndexedSlices, in its dtype.

    Raises:
        ValueError: `scalar` is no scalar.
        InvalidArgumentError: `scalar` has another dtype than `x`.
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values), x.indices, x.dense_shape)
    value = convert(x)
    factor = convert_like(scalar, value._t, "scalar_mul")
    if factor.ndim:
        raise ValueError(f"scalar_mul: the first argument must be a scalar; got {factor.spec}. "
                         f"Use * to multiply tensors")
    return s.multiply(factor, value)


# ---------------------------------------------------------------- log of sums of exponentials
def _scaled(xp: Any, x: Any, axis: Axes) -> tuple[Any, Any, Any]:
    """eˣ⁻ᵐ, its sum over `axis`, and m: the largest element where that is finite, else 0."""
    kept = reduced(x.shape, axis, True)
    top = xp.max(x, axis=axis, keepdims=True) if x.size else xp.zeros(kept, x.dtype)
    # inf - inf is nan; with 0 taken out the infinities come through.
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    terms = xp.exp(x - top)
    wide = terms.astype(running_type(x.dtype), copy=False)
    return terms, total(wide, axis, True), top


@primitive(tf_name="Softmax")
def share_(xp: Any, x: Any, *, axis: Axes) -> Any:
    """y = eˣ / Σ eˣ over `axis`, and 0 where all elements are -inf."""
    terms, total, _ = _scaled(xp, x, axis)
    # All -inf: no share is defined, and 0 keeps the gradient finite.
    return (terms / xp.where(total == 0, xp.ones_like(total), total)).astype(x.dtype)


def exponentials(x: Tensor, axis: Axes) -> tuple[Any, Any, Any]:
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


share_.infer(lambda x, **_: x)


@share_.vjp("x")
def _(g: Tensor, y: Any, *, axis: Axes) -> Any:
    weighed = g * y
    return weighed - y * reduce_sum_(weighed, axis=axis, keepdims=True)


share_.cases = [case((2, 3, 4), axis=(0, 2)), case((3,), axis=())]


@primitive(tf_name="LogSumExp")
def reduce_logsumexp_(xp: Any, x: Any, *, axis: Axes, keepdims: bool = False) -> Any:
    """y = log Σ eˣ over `axis`, with the largest element taken out first."""
    _, total, top = _scaled(xp, x, axis)
    y = (xp.log(total) + top).astype(x.dtype)
    return y if keepdims else y.reshape(reduced(x.shape, axis, False))


@reduce_logsumexp_.defined
def _(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    _, sums, top = exponentials(x, axis)
    y = s.add(s.log(sums), top)
    return y if keepdims else reshape_(y, shape=reduced(x.spec.shape, axis, False))


reduce_logsumexp_.infer(lambda x, *, axis, keepdims: taken(
    "reduce_logsumexp", "real floating tensors", x, ". Write tf.cast(x, tf.float32)"
    ).reshaped(reduced(x.shape, axis, keepdims)))
reduce_logsumexp_.on_cuda("kernels.softmax.reduce_logsumexp")
reduce_logsumexp_.vjp(x=lambda g, x, *, axis: logsumexp_grad_(g, x, axis=axis))


@composite
def logsumexp_grad_(g: Tensor, x: Tensor, *, axis: Axes) -> Tensor:
    """g eˣ / Σ eˣ over `axis`, for g with or without the axes."""
    return reshape_(g, shape=kept_shape(x.spec, axis)) * share_(x, axis=axis)


logsumexp_grad_.on_cuda("kernels.softmax.reduce_logsumexp_grad")
logsumexp_grad_.cases = [case((2,), (2, 3), axis=(1,)), case((1, 1, 4), (2, 3, 4), axis=(0, 1))]


reduce_logsumexp_.cases = CASES


def reduce_logsumexp(input_tensor: TensorLike, axis: IntsLike | None = None, keepdims: bool = False,
                     name: str | None = None) -> Tensor:
    """log Σ eˣ over `axis`, without overflow; -inf for no elements.

    Where all elements are -inf the gradient is 0.

    Raises:
        InvalidArgumentError: no such axis, or not real floating.
    """
    x, axes = prepared("reduce_logsumexp", input_tensor, axis)
    return reduce_logsumexp_(x, axis=axes, keepdims=bool(keepdims))

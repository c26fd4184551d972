"""log Σ exp over axes, and the shares of the exponentials, which are its gradient."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.dtypes import running_type
from gtape.core.op import case
from gtape.core.spec import reduced
from gtape.core.tensor import Tensor
from gtape.numerics.sums import total
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import taken
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


def exponentials(x: TensorLike, axis: Axes) -> tuple[Any, Any, Any]:
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

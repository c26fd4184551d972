"""softmax and log_softmax: scores to probabilities along an axis."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import Tensor
from gtape.numerics.arrays import working
from gtape.numerics.sums import total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, taken
from gtape.ops.elementwise.scalars import divide, exp, log, multiply, subtract
from gtape.ops.reductions.reductions import reduce_max_, reduce_sum_


def shifted(xp: ArrayModule, x: Array, axis: int) -> Array:
    """x minus its largest value along `axis`: exponentials of it cannot overflow."""
    wide = working(xp, x)
    # NumPy finds no largest of nothing.
    if not wide.size:
        return wide.copy()
    return wide - wide.max(axis=axis, keepdims=True)


def scores_spec(name: str, x: Spec) -> Spec:
    """`x`, when it can be scores. Raises InvalidArgumentError for other than real floats."""
    taken(name, "real floating tensors", x, ". Write tf.cast(logits, tf.float32)")
    if not x.ndim:
        raise InvalidArgumentError(f"{name} needs at least one axis; got the scalar {x}")
    return x


def _prepared(name: str, logits: TensorLike, axis: int | None) -> tuple[Tensor, int]:
    x = convert(logits)
    scores_spec(name, x.spec)
    at = -1 if axis is None else as_int(axis, f"{name}: axis")
    return x, normal_axes(name, at, x.ndim)[0]


@primitive(tf_name="Softmax")
def softmax_(xp: ArrayModule, x: Array, *, axis: int) -> Array:
    """y = eˣ / Σ eˣ along `axis`."""
    y = shifted(xp, x, axis)
    # In place: `shifted` made the array.
    xp.exp(y, out=y)
    y /= total(y, (axis,), True)
    return y.astype(x.dtype, copy=False)


def exponentials(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """x minus its largest value along `axis`, eˣ of that, and Σ of these along `axis`."""
    z = subtract(x, reduce_max_(x, axis=(axis,), keepdims=True))
    terms = exp(z)
    return z, terms, reduce_sum_(terms, axis=(axis,), keepdims=True)


@softmax_.defined
def _(x: Tensor, *, axis: int) -> Tensor:
    _, terms, sums = exponentials(x, axis)
    return divide(terms, sums)


softmax_.infer(lambda x, **_: scores_spec("softmax", x))
softmax_.on_cuda("kernels.softmax.softmax")
# The result is read, not x: nothing else is kept.
softmax_.vjp(x=lambda g, y, *, axis: softmax_grad_(g, y, axis=axis))


@primitive(linear="a", tf_name="SoftmaxGrad")
def softmax_grad_(xp: ArrayModule, a: Array, p: Array, *, axis: int) -> Array:
    """p (a - Σ a p): the derivative of softmax at the result p, applied to a; self-adjoint."""
    # Sums of float16 are added in float32, and rounded once.
    weighted = working(xp, a * p)
    y = weighted - p * total(weighted, (axis,), True)
    return y.astype(p.dtype, copy=False)


@softmax_grad_.defined
def _(a: Tensor, p: Tensor, *, axis: int) -> Tensor:
    weighted = multiply(a, p)
    return subtract(weighted, multiply(p, reduce_sum_(weighted, axis=(axis,), keepdims=True)))


softmax_grad_.infer(lambda a, p, **_: p)
softmax_grad_.on_cuda("kernels.softmax.softmax_grad")
softmax_grad_.vjp(a=lambda g, p, *, axis: softmax_grad_(g, p, axis=axis))


# Reached at second order only, where p is the result of the softmax itself.
@softmax_grad_.vjp("p")
def _(g: Tensor, a: Tensor, p: Tensor, *, axis: int) -> Tensor:
    inner = a - reduce_sum_(a * p, axis=(axis,), keepdims=True)
    return g * inner - a * reduce_sum_(g * p, axis=(axis,), keepdims=True)


softmax_.cases = [case((2, 3), axis=1), case((3, 2, 2), axis=0), case((1,), axis=0)]
softmax_grad_.cases = [case((2, 3), (2, 3), axis=1), case((2, 3), (2, 3), axis=0)]


@takes_composites
def softmax(logits: TensorLike, axis: Any = None, name: str | None = None) -> Tensor:
    """eˣ / Σ eˣ along `axis` (the last one when None), without overflow.
    Raises InvalidArgumentError: no such axis, a scalar, or not real floating numbers."""
    x, at = _prepared("softmax", logits, axis)
    return softmax_(x, axis=at)


@primitive(tf_name="LogSoftmax")
def log_softmax_(xp: ArrayModule, x: Array, *, axis: int) -> Array:
    """y = x - log Σ eˣ along `axis`."""
    y = shifted(xp, x, axis)
    y -= xp.log(total(xp.exp(y), (axis,), True))
    return y.astype(x.dtype, copy=False)


@log_softmax_.defined
def _(x: Any, *, axis: int) -> Tensor:
    z, _, sums = exponentials(x, axis)
    return subtract(z, log(sums))


log_softmax_.infer(lambda x, **_: scores_spec("log_softmax", x))
log_softmax_.on_cuda("kernels.softmax.log_softmax")
# By the result, which holds the logs of the probabilities: no softmax is computed again.
log_softmax_.vjp(x=lambda g, y, *, axis: log_softmax_grad_(g, y, axis=axis))


@primitive(linear="a", tf_name="LogSoftmaxGrad")
def log_softmax_grad_(xp: ArrayModule, a: Array, q: Array, *, axis: int) -> Array:
    """a - e^q Σ a: the adjoint derivative of log_softmax at the result q, applied to a."""
    wide = working(xp, a)
    y = wide - xp.exp(working(xp, q)) * total(wide, (axis,), True)
    return y.astype(q.dtype, copy=False)


log_softmax_grad_.defined(lambda a, q, *, axis: subtract(
    a, multiply(exp(q), reduce_sum_(a, axis=(axis,), keepdims=True))))
log_softmax_grad_.infer(lambda a, q, **_: q)
log_softmax_grad_.on_cuda("kernels.softmax.log_softmax_grad")
log_softmax_grad_.vjp(a=lambda g, q, *, axis:
                      g - reduce_sum_(g * exp(q), axis=(axis,), keepdims=True))
log_softmax_grad_.vjp(q=lambda g, a, q, *, axis:
                      -(g * exp(q) * reduce_sum_(a, axis=(axis,), keepdims=True)))


log_softmax_.cases = [case((2, 3), axis=1), case((3, 2, 2), axis=0), case((1,), axis=0)]
log_softmax_grad_.cases = [case((2, 3), (2, 3), axis=1), case((2, 3), (2, 3), axis=0)]


def log_softmax(logits: TensorLike, axis: Any = None, name: str | None = None) -> Tensor:
    """x - log Σ eˣ along `axis` (the last one when None), without overflow.
    Raises InvalidArgumentError: no such axis, a scalar, or not real floating numbers."""
    x, at = _prepared("log_softmax", logits, axis)
    return log_softmax_(x, axis=at)

"""Cross entropy of softmax as primitives: one forward pass, one backward kernel each.

The forward keeps the probabilities as a second result, which the backward reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics.precision import working
from gtape.numerics.sums import total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import one_dtype
from gtape.ops.checks.ranges import within_
from gtape.ops.elementwise.scalars import divide, log, multiply, subtract, where
from gtape.ops.nn.softmax import exponentials, log_softmax_, scores_spec, shifted, softmax_grad_
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.casting import cast_
from gtape.ops.shape.creation import is_class
from gtape.ops.shape.layout import expand_dims, reshape_


def _normalised(xp: Any, logits: object) -> tuple[Any, Any, Any]:
    """Shifted logits, log Σ e^logits of them with the axis kept, and probabilities."""
    z = shifted(xp, logits, -1)
    probs = xp.exp(z)
    sums = total(probs, (probs.ndim - 1,), True)
    probs /= sums
    return z, xp.log(sums), probs


@primitive(outputs="y probs", tf_name="SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy_(xp: ArrayModule, logits: Array, labels: Array) -> tuple[Array, Array]:
    """ℓ = -Σ labels log softmax(logits) over the last axis, and the probabilities."""
    z, log_total, probs = _normalised(xp, logits)
    loss = total(working(xp, labels) * (log_total - z), (logits.ndim - 1,))
    return xp.asarray(loss).astype(logits.dtype), probs.astype(logits.dtype, copy=False)


@softmax_cross_entropy_.defined
def _(logits: Any, labels: object) -> Any:
    last = logits.ndim - 1
    z, terms, sums = exponentials(logits, last)
    loss = reduce_sum_(multiply(labels, subtract(log(sums), z)), axis=(last,))
    return loss, divide(terms, sums)


@softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("softmax_cross_entropy_with_logits", logits)
    one_dtype("softmax_cross_entropy_with_logits", (logits, labels))
    return logits.reshaped(logits.shape[:-1]), logits


softmax_cross_entropy_.on_cuda("kernels.cross_entropy.cross_entropy")


@softmax_cross_entropy_.vjp("logits")
def _(gs: Sequence[Tensor | None], labels: Tensor, probs: Tensor) -> Tensor:
    # By convention the labels are taken to sum to 1, whatever they are.
    parts = [] if gs[0] is None else [cross_entropy_grad_(gs[0], probs, labels)]
    return _with_probs(parts, gs[1], probs)


def _with_probs(parts: list[Any], g: Tensor | None, probs: Tensor) -> Any:
    if g is not None:
        parts.append(softmax_grad_(g, probs, axis=probs.ndim - 1))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@softmax_cross_entropy_.vjp("labels")
def _(gs: Sequence[Tensor | None], logits: Tensor) -> Any:
    if gs[0] is None:
        return None
    return -(expand_dims(gs[0], -1) * log_softmax_(logits, axis=logits.ndim - 1))


@primitive(linear="a")
def cross_entropy_grad_(xp: ArrayModule, a: Array, probs: Array, labels: Array) -> Array:
    """a (probs - labels), with the classes last."""
    y = probs - labels
    y *= xp.asarray(a)[..., None]
    return y


cross_entropy_grad_.defined(lambda a, probs, labels:
                            multiply(expand_dims(a, -1), subtract(probs, labels)))
cross_entropy_grad_.infer(lambda a, probs, labels: probs)
cross_entropy_grad_.on_cuda("kernels.cross_entropy.cross_entropy_grad")
cross_entropy_grad_.vjp(a=lambda g, probs, labels:
                        reduce_sum_(g * (probs - labels), axis=(probs.ndim - 1,)))
cross_entropy_grad_.vjp(probs=lambda g, a: g * expand_dims(a, -1))
cross_entropy_grad_.vjp(labels=lambda g, a: -(g * expand_dims(a, -1)))


_EVERY_LABEL = "sparse_softmax_cross_entropy_with_logits: every label, a class of the logits,"


def _checked_classes(xp: ArrayModule, labels: Any, classes: int) -> None:
    """Raises InvalidArgumentError for a label outside [0, classes), in host memory."""
    if xp is np and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= classes:
            bad = low if low < 0 else high
            raise InvalidArgumentError(
                f"{_EVERY_LABEL} must lie in [0, {classes}); got {bad}")


def _cells(xp: Any, labels: object, classes: int) -> tuple[Any, Any]:
    """Where the labels lie in the matrix [examples, classes]."""
    flat = xp.asarray(labels).reshape(-1)
    return xp.arange(flat.size), flat if xp is np else xp.clip(flat, 0, classes - 1)


def _at_labels(xp: ArrayModule, x: Any, labels: Any) -> Any:
    rows = x.reshape(labels.size, x.shape[-1])
    return rows[_cells(xp, labels, x.shape[-1])].reshape(x.shape[:-1])


@primitive(outputs="y probs", tf_name="SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_(xp: Any, logits: Any, labels: Any) -> Any:
    """ℓ = -log softmax(logits)[label] over the last axis, and the probabilities.

    On a GPU, where looking at the labels would wait for the device, a label that is no class makes
    nan of its loss and gradient.
    """
    labels = xp.asarray(labels)
    _checked_classes(xp, labels, logits.shape[-1])
    z, log_total, probs = _normalised(xp, logits)
    if xp is not np:
        wrong = (labels < 0) | (labels >= logits.shape[-1])
        log_total = xp.where(wrong[..., None], np.nan, log_total)
        probs = xp.where(wrong[..., None], np.nan, probs)
    loss = log_total[..., 0] - _at_labels(xp, z, labels)
    return xp.asarray(loss).astype(logits.dtype), probs.astype(logits.dtype, copy=False)


@sparse_softmax_cross_entropy_.defined
def _(logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    last = logits.ndim - 1
    labels = within_(labels, low=0, high=logits.spec.shape[last], what=_EVERY_LABEL)
    z, terms, sums = exponentials(logits, last)
    loss = subtract(reshape_(log(sums), shape=labels.spec.shape), pick_class_(z, labels))
    return loss, divide(terms, sums)


@sparse_softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("sparse_softmax_cross_entropy_with_logits", logits)
    return logits.reshaped(logits.shape[:-1]), logits


sparse_softmax_cross_entropy_.on_cuda("kernels.cross_entropy.cross_entropy")


@sparse_softmax_cross_entropy_.vjp("logits")
def _(gs: Sequence[Tensor | None], labels: Tensor, probs: Tensor) -> Tensor:
    parts = [] if gs[0] is None else [sparse_cross_entropy_grad_(gs[0], probs, labels)]
    return _with_probs(parts, gs[1], probs)


@primitive(linear="a")
def sparse_cross_entropy_grad_(xp: Any, a: object, probs: Any, labels: object) -> Any:
    """a (probs - onehot(labels)), with the classes last."""
    weight = xp.asarray(a)[..., None]
    rows = (probs * weight).reshape(weight.size, probs.shape[-1])
    rows[_cells(xp, labels, probs.shape[-1])] -= weight.reshape(-1)
    return rows.reshape(probs.shape)


@sparse_cross_entropy_grad_.defined
def _(a: object, probs: Any, labels: object) -> Any:
    chosen = cast_(is_class(labels, probs.spec.shape[-1]), dtype=probs.dtype)
    return multiply(expand_dims(a, -1), subtract(probs, chosen))


sparse_cross_entropy_grad_.infer(lambda a, probs, labels: probs)
sparse_cross_entropy_grad_.on_cuda("kernels.cross_entropy.cross_entropy_grad")
sparse_cross_entropy_grad_.vjp(a=lambda g, probs, labels:
                               reduce_sum_(g * probs, axis=(g.ndim - 1,)) - pick_class_(g, labels))
sparse_cross_entropy_grad_.vjp(probs=lambda g, a: g * expand_dims(a, -1))


@primitive(linear="x")
def pick_class_(xp: ArrayModule, x: Array, labels: Array) -> Any:
    """y[…] = x[…, labels[…]]."""
    return _at_labels(xp, x, xp.asarray(labels))


@pick_class_.defined
def _(x: Tensor, labels: Tensor) -> Tensor:
    chosen = where(is_class(labels, x.spec.shape[-1]), x, 0.0)
    return reduce_sum_(chosen, axis=(x.ndim - 1,))


pick_class_.infer(lambda x, labels: x.reshaped(x.shape[:-1]))
pick_class_.vjp(x=lambda g, x_spec, labels: place_class_(g, labels, classes=x_spec.shape[-1]))


@primitive(linear="x")
def place_class_(xp: ArrayModule, x: Array, labels: Array, *, classes: int) -> Any:
    """y[…, labels[…]] = x[…] and 0 elsewhere: the adjoint of pick_class_."""
    rows = xp.zeros((x.size, classes), x.dtype)
    rows[_cells(xp, labels, classes)] = x.reshape(-1)
    return rows.reshape((*x.shape, classes))


place_class_.defined(lambda x, labels, *, classes:
                     where(is_class(labels, classes), expand_dims(x, -1), 0.0))
place_class_.infer(lambda x, labels, *, classes: x.reshaped((*x.shape, classes)))
place_class_.vjp(x=lambda g, labels: pick_class_(g, labels))


# The rule for logits is exact for labels that sum to 1, so they are given.
softmax_cross_entropy_.cases = [
    case((4, 3), [[0.2, 0.3, 0.5]] * 4, orders=1, dtypes=("float64",))]
sparse_softmax_cross_entropy_.refuses = True
sparse_softmax_cross_entropy_.cases = [case((4, 3), ints(4, below=3)), case((3,), ints(below=3))]
cross_entropy_grad_.cases = [case((4,), (4, 3), (4, 3))]
sparse_cross_entropy_grad_.cases = [case((4,), (4, 3), ints(4, below=3))]
pick_class_.cases = [case((2, 3), ints(2, below=3))]
place_class_.cases = [case((2,), ints(2, below=3), classes=3)]

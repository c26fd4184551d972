"""Losses: cross entropies, squared error, and how they are averaged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert, convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec, broadcast_shapes, normal_axes
from gtape.core.tensor import Tensor
from gtape.kinds.primitive import primitive
from gtape.numerics.precision import working
from gtape.ops.arguments import as_int, one_dtype
from gtape.ops.casting import cast
from gtape.ops.layout import broadcast_to_, expand_dims, reshape_, transpose_
from gtape.ops.reductions import reduce_sum, reduce_sum_
from gtape.ops.scalars import exp, letter, log, real_abs, sigmoid, where, word
from gtape.ops.softmax import log_softmax_, scores_spec, shifted, softmax_grad_


# ---------------------------------------------------------------- softmax cross entropy
def _normalised(xp: Any, logits: Any) -> tuple[Any, Any, Any]:
    """Shifted logits, log Σ e^logits of them with the axis kept, and probabilities."""
    z = shifted(xp, logits, -1)
    probs = xp.exp(z)
    total = xp.sum(probs, axis=-1, keepdims=True)
    probs /= total
    return z, xp.log(total), probs


@primitive(outputs="y probs", tf_name="SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy_(xp: Any, logits: Any, labels: Any) -> Any:
    """ℓ = -Σ labels log softmax(logits) over the last axis, and the probabilities."""
    z, log_total, probs = _normalised(xp, logits)
    loss = xp.sum(working(xp, labels) * (log_total - z), axis=-1)
    return xp.asarray(loss).astype(logits.dtype), probs.astype(logits.dtype, copy=False)


@softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("softmax_cross_entropy_with_logits", logits)
    one_dtype("softmax_cross_entropy_with_logits", (logits, labels))
    return logits.reshaped(logits.shape[:-1]), logits


@softmax_cross_entropy_.vjp("logits")
def _(gs: Any, labels: Any, probs: Any) -> Any:
    # By convention the labels are taken to sum to 1, whatever they are.
    parts = [] if gs[0] is None else [expand_dims(gs[0], -1) * (probs - labels)]
    return _with_probs(parts, gs[1], probs)


def _with_probs(parts: list[Any], g: Any, probs: Any) -> Any:
    if g is not None:
        parts.append(softmax_grad_(g, probs, axis=probs.ndim - 1))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@softmax_cross_entropy_.vjp("labels")
def _(gs: Any, logits: Any) -> Any:
    if gs[0] is None:
        return None
    return -(expand_dims(gs[0], -1) * log_softmax_(logits, axis=logits.ndim - 1))


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: Any = -1,
                                      name: str | None = None) -> Tensor:
    """-Σ labels log softmax(logits) along `axis`.

    The gradient for the logits is softmax - labels even where labels do not sum to 1; labels get
    the gradient -log softmax. Labels are cast to the dtype of the logits.

    Raises:
        InvalidArgumentError: shapes that do not fit, no such axis, integer logits.
    """
    name = "softmax_cross_entropy_with_logits"
    x = convert(logits)
    y = cast(convert_labels(labels, x), x.dtype)
    scores_spec(name, x.spec)
    (at,) = normal_axes(name, as_int(axis, f"{name}: axis"), x.ndim)
    if x.spec.shape != y.spec.shape:
        shape = broadcast_shapes(name, y.spec, x.spec)
        x, y = (t if t.spec.shape == shape else broadcast_to_(t, shape=shape) for t in (x, y))
    if at != x.ndim - 1:
        perm = (*range(at), *range(at + 1, x.ndim), at)
        x, y = transpose_(x, perm=perm), transpose_(y, perm=perm)
    return softmax_cross_entropy_(x, y)[0]


def convert_labels(labels: Any, logits: Tensor) -> Tensor:
    """Labels as a tensor of their own dtype on the device of the logits."""
    return convert(labels, None, logits._t.device)


def _checked_classes(xp: Any, labels: Any, classes: int) -> None:
    if xp is np and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= classes:
            bad = low if low < 0 else high
            raise InvalidArgumentError(
                f"sparse_softmax_cross_entropy_with_logits: every label must lie in [0, {classes})"
                f", the classes of the logits; got {bad}")


def _at_labels(xp: Any, x: Any, labels: Any) -> Any:
    return xp.take_along_axis(x, labels[..., None].astype(np.int64), axis=-1)[..., 0]


@primitive(outputs="y probs", tf_name="SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_(xp: Any, logits: Any, labels: Any) -> Any:
    """ℓ = -log softmax(logits)[label] over the last axis, and the probabilities."""
    labels = xp.asarray(labels)
    _checked_classes(xp, labels, logits.shape[-1])
    z, log_total, probs = _normalised(xp, logits)
    loss = log_total[..., 0] - _at_labels(xp, z, labels)
    return xp.asarray(loss).astype(logits.dtype), probs.astype(logits.dtype, copy=False)


@sparse_softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("sparse_softmax_cross_entropy_with_logits", logits)
    return logits.reshaped(logits.shape[:-1]), logits


@sparse_softmax_cross_entropy_.vjp("logits")
def _(gs: Any, labels: Any, probs: Any) -> Any:
    parts = [] if gs[0] is None else [sparse_cross_entropy_grad_(gs[0], probs, labels)]
    return _with_probs(parts, gs[1], probs)


@primitive(linear="a")
def sparse_cross_entropy_grad_(xp: Any, a: Any, probs: Any, labels: Any) -> Any:
    """a (probs - onehot(labels)), with the classes last."""
    weight = xp.asarray(a)[..., None]
    made = probs * weight
    where = xp.asarray(labels)[..., None].astype(np.int64)
    at_label = xp.take_along_axis(made, where, axis=-1) - weight
    xp.put_along_axis(made, where, at_label, axis=-1)
    return made


@sparse_cross_entropy_grad_.infer
def _(a: Spec, probs: Spec, labels: Spec) -> Spec:
    return probs


@sparse_cross_entropy_grad_.vjp("a")
def _(g: Any, probs: Any, labels: Any) -> Any:
    return reduce_sum_(g * probs, axis=(g.ndim - 1,)) - pick_class_(g, labels)


@sparse_cross_entropy_grad_.vjp("probs")
def _(g: Any, a: Any) -> Any:
    return g * expand_dims(a, -1)


@primitive(linear="x")
def pick_class_(xp: Any, x: Any, labels: Any) -> Any:
    """y[…] = x[…, labels[…]]."""
    return _at_labels(xp, x, xp.asarray(labels))


@pick_class_.infer
def _(x: Spec, labels: Spec) -> Spec:
    return x.reshaped(x.shape[:-1])


@pick_class_.vjp("x")
def _(g: Any, x: Spec, labels: Any) -> Any:
    return place_class_(g, labels, classes=x.shape[-1])


@primitive(linear="x")
def place_class_(xp: Any, x: Any, labels: Any, *, classes: int) -> Any:
    """y[…, labels[…]] = x[…] and 0 elsewhere: the adjoint of pick_class_."""
    made = xp.zeros((*x.shape, classes), x.dtype)
    xp.put_along_axis(made, xp.asarray(labels)[..., None].astype(np.int64),
                      xp.asarray(x)[..., None], axis=-1)
    return made


@place_class_.infer
def _(x: Spec, labels: Spec, *, classes: int) -> Spec:
    return x.reshaped((*x.shape, classes))


@place_class_.vjp("x")
def _(g: Any, labels: Any) -> Any:
    return pick_class_(g, labels)


# softmax_cross_entropy_ has no case: by convention its rule is exact for labels summing to 1 only.
sparse_softmax_cross_entropy_.cases = [case((4, 3), ints(4, below=3)), case((3,), ints(below=3))]
sparse_cross_entropy_grad_.cases = [case((4,), (4, 3), ints(4, below=3))]
pick_class_.cases = [case((2, 3), ints(2, below=3))]
place_class_.cases = [case((2,), ints(2, below=3), classes=3)]


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any,
                                             name: str | None = None) -> Tensor:
    """-log softmax(logits)[label] over the last axis, for integer labels.

    Raises:
        InvalidArgumentError: a label outside [0, classes) (in host memory; a GPU wraps it),
            labels that are not integers, logits that are not real floating numbers.
        ValueError: the shape of the labels is not that of the logits without its last axis.
    """
    name = "sparse_softmax_cross_entropy_with_logits"
    x = convert(logits)
    y = convert_labels(labels, x)
    if not y.dtype.is_integer:
        raise InvalidArgumentError(f"{name}: labels must be integers; got {y.spec}. "
                                   f"Write tf.cast(labels, tf.int64)")
    if not x.ndim:
        raise ValueError(f"{name}: logits must not be a scalar; got {x.spec}")
    if y.spec.shape != x.spec.shape[:-1]:
        raise ValueError(f"{name}: labels must have the shape of logits without the last axis, "
                         f"{list(x.spec.shape[:-1])}; got labels {y.spec}, logits {x.spec}. "
                         f"One-hot labels need softmax_cross_entropy_with_logits")
    return sparse_softmax_cross_entropy_(x, y)[0]


# ---------------------------------------------------------------- binary cross entropy
def _sigmoid_cross_entropy(xp: Any, x: Any, z: Any) -> Any:
    return xp.maximum(x, 0) - x * z + xp.log1p(xp.exp(-xp.abs(x)))


sigmoid_cross_entropy_ = letter(
    "sigmoid_cross_entropy(x, z)", numpy=_sigmoid_cross_entropy, types="real_float",
    cuda="max(x, 0) - x * z + log1p(exp(-abs(x)))",
    doc="-z log σ(x) - (1 - z) log(1 - σ(x)), without overflow.",
    d_x=lambda g, x, z: g * (sigmoid(x) - z), d_z=lambda g, x: -g * x)


def _same_shape(name: str, labels: Any, logits: Any) -> tuple[Tensor, Tensor]:
    if labels is None or logits is None:
        raise ValueError(f"{name} needs both labels and logits; got labels={labels!r:.40}, "
                         f"logits={logits!r:.40}")
    if isinstance(logits, Tensor) or hasattr(logits, "_read_"):
        x = convert(logits)
        z = convert_like(labels, x._t, name)
    else:
        z = convert(labels)
        x = convert_like(logits, z._t, name)
    if x.spec.shape != z.spec.shape:
        raise ValueError(f"{name}: logits and labels must have the same shape; got logits "
                         f"{x.spec}, labels {z.spec}. Reshape one of them")
    return z, x


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None,
                                      name: str | None = None) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)) for logits x and labels z, without overflow.

    Raises:
        ValueError: shapes that differ, or an argument is missing.
        InvalidArgumentError: dtypes that differ, or no real floating numbers.
    """
    z, x = _same_shape("sigmoid_cross_entropy_with_logits", labels, logits)
    return sigmoid_cross_entropy_(x, z)


def _weighted_cross_entropy(x: Any, z: Any, q: Any) -> Any:
    from gtape.ops.activations import relu
    from gtape.ops.scalars import log1p

    # relu and abs have the slope 0 at 0, which is part of TensorFlow's gradient here.
    return (1 - z) * x + (1 + (q - 1) * z) * (log1p(exp(-real_abs(x))) + relu(-x))


weighted_cross_entropy_ = word(_weighted_cross_entropy, types="real_float", domain=(0.1, 2.0))


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any,
                                       name: str | None = None) -> Tensor:
    """-q z log σ(x) - (1 - z) log(1 - σ(x)), where the weight q of positives may broadcast.

    Raises:
        ValueError: the shapes of labels z and logits x differ.
        InvalidArgumentError: dtypes that differ, or no real floating numbers.
    """
    z, x = _same_shape("weighted_cross_entropy_with_logits", labels, logits)
    return weighted_cross_entropy_(x, z, pos_weight)


# ---------------------------------------------------------------- other losses
def _poisson_loss(z: Any, c: Any) -> Any:
    return exp(c) - c * z


def _stirling(z: Any) -> Any:
    full = z * log(z) - z + 0.5 * log((2 * math.pi) * z)
    return where((z >= 0) & (z <= 1), 0, full)


poisson_loss_ = word(_poisson_loss, types="real_float")
stirling_ = word(_stirling, types="real_float", domain=(1.5, 3.0))


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False,
                     name: str | None = None) -> Tensor:
    """e^c - z c for log input c and targets z: -log of the Poisson probability up to a constant.

    Args:
        compute_full_loss: add Stirling's approximation of log z! for targets above 1.

    Raises:
        ValueError: shapes that differ.
    """
    z, c = _same_shape("log_poisson_loss", targets, log_input)
    loss = poisson_loss_(z, c)
    return loss + stirling_(z) if compute_full_loss else loss


@primitive(tf_name="L2Loss")
def l2_loss_(xp: Any, t: Any) -> Any:
    """y = Σ t² / 2."""
    wide = working(xp, t).reshape(-1)
    return xp.asarray(xp.dot(wide, wide) * 0.5).astype(t.dtype)


@l2_loss_.infer
def _(t: Spec) -> Spec:
    if not t.dtype.is_floating:
        raise InvalidArgumentError(f"l2_loss takes real floating tensors; got {t}")
    return t.reshaped(())


@l2_loss_.vjp("t")
def _(g: Any, t: Any) -> Any:
    return g * t


l2_loss_.cases = [case((2, 3)), case(())]


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Σ t² / 2 over all elements.

    Raises:
        InvalidArgumentError: not real floating numbers.
    """
    return l2_loss_(convert(t))


# ---------------------------------------------------------------- averages
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None,
                         global_batch_size: Any = None) -> Tensor:
    """Σ loss / batch size, each example weighted; 0 for an empty batch.

    Raises:
        ValueError: the loss is a scalar, or the batch size is negative.
    """
    from gtape.ops.scalars import divide_no_nan

    loss = convert(per_example_loss)
    if not loss.ndim:
        raise ValueError(f"compute_average_loss: per_example_loss must have rank 1 or more; got "
                         f"{loss.spec}. Do not reduce the loss before")
    if sample_weight is not None:
        loss = _weighted(loss, sample_weight)
    size = loss.spec.shape[0] if global_batch_size is None else as_int(
        global_batch_size, "compute_average_loss: global_batch_size")
    if size < 0:
        raise ValueError(f"compute_average_loss: global_batch_size must not be negative; "
                         f"got {size}")
    return divide_no_nan(reduce_sum(loss), convert_like(float(size), loss._t, "batch size"))


def _weighted(loss: Tensor, sample_weight: Any) -> Tensor:
    weight = convert_like(sample_weight, loss._t, "compute_average_loss: sample_weight")
    if weight.ndim < loss.ndim:
        weight = reshape_(weight, shape=weight.spec.shape + (1,) * (loss.ndim - weight.ndim))
    return loss * weight  # type: ignore[operator]


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the loss: there is one replica."""
    return reduce_sum(regularization_loss)

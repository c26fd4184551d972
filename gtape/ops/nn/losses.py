"""Losses: cross entropies, squared error, and how they are averaged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, SupportsFloat

from gtape.core.convert import convert, convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import broadcast_shapes, normal_axes
from gtape.core.state_ref import Readable
from gtape.core.tensor import Tensor
from gtape.numerics.precision import working
from gtape.numerics.sums import squares
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, taken
from gtape.ops.elementwise.scalars import (
    divide_no_nan,
    exp,
    log,
    log1p,
    multiply,
    real_abs,
    scalar_function,
    scalar_op,
    sigmoid,
    square,
    where,
)
from gtape.ops.nn.activations import relu
from gtape.ops.nn.cross_entropy import softmax_cross_entropy_, sparse_softmax_cross_entropy_
from gtape.ops.nn.softmax import scores_spec
from gtape.ops.reductions.reductions import reduce_sum, reduce_sum_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import broadcast_to_, reshape_, transpose_

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.device import Array, ArrayModule


# ---------------------------------------------------------------- softmax cross entropy
def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, axis: IntsLike = -1,
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


def convert_labels(labels: TensorLike, logits: Tensor) -> Tensor:
    """Labels as a tensor of their own dtype on the device of the logits."""
    return convert(labels, None, logits._t.device)


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike,
                                             name: str | None = None) -> Tensor:
    """-log softmax(logits)[label] over the last axis, for integer labels.

    Raises:
        InvalidArgumentError: a label outside [0, classes) (in host memory; a GPU gives nan for it),
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
def _sigmoid_cross_entropy(xp: ArrayModule, x: Array, z: Array) -> Array:
    return xp.maximum(x, 0) - x * z + xp.log1p(xp.exp(-xp.abs(x)))


sigmoid_cross_entropy_ = scalar_op(
    "sigmoid_cross_entropy(x, z)", numpy=_sigmoid_cross_entropy, types="real_float",
    cuda="larger(x, 0) - x * z + log1p(exp(-absolute(x)))",
    doc="-z log σ(x) - (1 - z) log(1 - σ(x)), without overflow.",
    d_x=lambda g, x, z: g * (sigmoid(x) - z), d_z=lambda g, x: -g * x)


def _same_shape(name: str, labels: TensorLike, logits: TensorLike) -> tuple[Tensor, Tensor]:
    if labels is None or logits is None:
        raise ValueError(f"{name} needs both labels and logits; got labels={shown(labels)}, "
                         f"logits={shown(logits)}")
    if isinstance(logits, (Tensor, Readable)):
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


def _weighted_cross_entropy(x: Any, z: Any, q: Any) -> Expr:
    """(1 - z) x + (1 + (q - 1) z) softplus(-x)."""
    # relu and abs have the slope 0 at 0, which is part of TensorFlow's gradient here.
    return (1 - z) * x + (1 + (q - 1) * z) * (log1p(exp(-real_abs(x))) + relu(-x))


weighted_cross_entropy_ = scalar_function(_weighted_cross_entropy, types="real_float",
                                          name="weighted_cross_entropy", domain=(0.1, 2.0))


def weighted_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike,
                                       pos_weight: SupportsFloat, name: str | None = None,
                                       ) -> Tensor:
    """-q z log σ(x) - (1 - z) log(1 - σ(x)), where the weight q of positives may broadcast.

    Raises:
        ValueError: the shapes of labels z and logits x differ.
        InvalidArgumentError: dtypes that differ, or no real floating numbers.
    """
    z, x = _same_shape("weighted_cross_entropy_with_logits", labels, logits)
    return weighted_cross_entropy_(x, z, pos_weight)


# ---------------------------------------------------------------- other losses
def _poisson_loss(z: Any, c: Any) -> Expr:
    """e^c - z c."""
    return exp(c) - c * z


def _stirling(z: Any) -> Expr:
    """z log z - z + log(2π z) / 2 for z > 1, else 0: Stirling's approximation of log z!."""
    full = z * log(z) - z + 0.5 * log((2 * math.pi) * z)
    return where((z >= 0) & (z <= 1), 0, full)


poisson_loss_ = scalar_function(_poisson_loss, types="real_float", name="log_poisson_loss")
stirling_ = scalar_function(_stirling, types="real_float", name="stirling", domain=(1.5, 3.0))


def log_poisson_loss(targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False,
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
def l2_loss_(xp: ArrayModule, t: Array) -> Array:
    """y = Σ t² / 2."""
    return xp.asarray(squares(working(xp, t)) * 0.5).astype(t.dtype)


l2_loss_.defined(lambda t: multiply(reduce_sum_(square(t), axis=tuple(range(t.ndim))), 0.5))

l2_loss_.infer(lambda t: taken("l2_loss", "real floating tensors", t).reshaped(()))
l2_loss_.vjp(t=lambda g, t: g * t)
l2_loss_.cases = [case((2, 3)), case(())]


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Σ t² / 2 over all elements.

    Raises:
        InvalidArgumentError: not real floating numbers.
    """
    return l2_loss_(convert(t))


# ---------------------------------------------------------------- averages
def compute_average_loss(per_example_loss: TensorLike, sample_weight: TensorLike | None = None,
                         global_batch_size: int | None = None) -> Tensor:
    """Σ loss / batch size, each example weighted; 0 for an empty batch.

    Raises:
        ValueError: the loss is a scalar, or the batch size is negative.
    """
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


def _weighted(loss: Tensor, sample_weight: TensorLike) -> Tensor:
    weight = convert_like(sample_weight, loss._t, "compute_average_loss: sample_weight")
    if weight.ndim < loss.ndim:
        weight = reshape_(weight, shape=weight.spec.shape + (1,) * (loss.ndim - weight.ndim))
    return loss * weight


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """The sum of the loss: there is one replica."""
    return reduce_sum(regularization_loss)

"""Losses: cross entropies, squared error, and how they are averaged.

Cross entropies of softmax are primitives: one forward pass, which keeps the probabilities as a
second result, and one backward kernel, which reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec, broadcast_shapes, normal_axes
from gtape.core.tensor import Tensor
from gtape.numerics.arrays import working
from gtape.numerics.sums import squares, total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, one_dtype, taken
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.scalars import scalar_function, scalar_op
from gtape.ops.indexing.gathering import within_
from gtape.ops.linalg.products import pair
from gtape.ops.nn.activations import relu
from gtape.ops.nn.softmax import exponentials, log_softmax_, scores_spec, shifted, softmax_grad_
from gtape.ops.reductions.reductions import reduce_sum, reduce_sum_
from gtape.ops.shape.casting import cast, cast_
from gtape.ops.shape.creation import is_class
from gtape.ops.shape.layout import broadcast_to_, expand_dims, reshape_, transpose_

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr


# One exponential serves all three: log softmax is computed of the sums, not of the probabilities,
# whose logarithm is -inf where they underflow.
def _normalised(xp: ArrayModule, logits: Array) -> tuple[Array, Array, Array]:
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
def _(logits: Tensor, labels: object) -> Any:
    last = logits.ndim - 1
    z, terms, sums = exponentials(logits, last)
    loss = reduce_sum_(s.multiply(labels, s.subtract(s.log(sums), z)), axis=(last,))
    return loss, s.divide(terms, sums)


@softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("softmax_cross_entropy_with_logits", logits)
    one_dtype("softmax_cross_entropy_with_logits", (logits, labels))
    return logits.reshaped(logits.shape[:-1]), logits


softmax_cross_entropy_.on_cuda("kernels.softmax.cross_entropy")


def _logits_cotangent(grad: Any, gs: Sequence[Tensor | None], probs: Tensor, labels: Tensor) -> Any:
    """The cotangent of the logits for those of the loss and of the probabilities, one at least."""
    part = None if gs[0] is None else grad(gs[0], probs, labels)
    if gs[1] is None:
        return part
    of_probs = softmax_grad_(gs[1], probs, axis=probs.ndim - 1)
    return of_probs if part is None else part + of_probs


@softmax_cross_entropy_.vjp("logits")
def _(gs: Sequence[Tensor | None], labels: Tensor, probs: Tensor) -> Tensor:
    # By convention the labels are taken to sum to 1, whatever they are, as in TensorFlow.
    return _logits_cotangent(cross_entropy_grad_, gs, probs, labels)


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
                            s.multiply(expand_dims(a, -1), s.subtract(probs, labels)))
cross_entropy_grad_.infer(lambda a, probs, labels: probs)
cross_entropy_grad_.on_cuda("kernels.softmax.cross_entropy_grad")
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
            raise InvalidArgumentError(f"{_EVERY_LABEL} must lie in [0, {classes}); got {bad}")


def _cells(xp: Any, labels: object, classes: int) -> tuple[Any, Any]:
    """Where the labels lie in the matrix [examples, classes]."""
    # CuPy wraps an index that is out of bounds around, and says nothing.
    flat = xp.asarray(labels).reshape(-1)
    return xp.arange(flat.size), flat if xp is np else xp.clip(flat, 0, classes - 1)


def _at_labels(xp: ArrayModule, x: Any, labels: Any) -> Any:
    rows = x.reshape(labels.size, x.shape[-1])
    return rows[_cells(xp, labels, x.shape[-1])].reshape(x.shape[:-1])


@primitive(outputs="y probs", tf_name="SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_(xp: ArrayModule, logits: Array, labels: Array,
                                  ) -> tuple[Array, Array]:
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
    loss = s.subtract(reshape_(s.log(sums), shape=labels.spec.shape), pick_class_(z, labels))
    return loss, s.divide(terms, sums)


@sparse_softmax_cross_entropy_.infer
def _(logits: Spec, labels: Spec) -> tuple[Spec, ...]:
    scores_spec("sparse_softmax_cross_entropy_with_logits", logits)
    return logits.reshaped(logits.shape[:-1]), logits


sparse_softmax_cross_entropy_.on_cuda("kernels.softmax.cross_entropy")


@sparse_softmax_cross_entropy_.vjp("logits")
def _(gs: Sequence[Tensor | None], labels: Tensor, probs: Tensor) -> Tensor:
    return _logits_cotangent(sparse_cross_entropy_grad_, gs, probs, labels)


@primitive(linear="a")
def sparse_cross_entropy_grad_(xp: ArrayModule, a: Array, probs: Array, labels: Array) -> Array:
    """a (probs - onehot(labels)), with the classes last."""
    weight = xp.asarray(a)[..., None]
    rows = (probs * weight).reshape(weight.size, probs.shape[-1])
    rows[_cells(xp, labels, probs.shape[-1])] -= weight.reshape(-1)
    return rows.reshape(probs.shape)


@sparse_cross_entropy_grad_.defined
def _(a: Tensor, probs: Tensor, labels: object) -> Any:
    chosen = cast_(is_class(labels, probs.spec.shape[-1]), dtype=probs.dtype)
    return s.multiply(expand_dims(a, -1), s.subtract(probs, chosen))


sparse_cross_entropy_grad_.infer(lambda a, probs, labels: probs)
sparse_cross_entropy_grad_.on_cuda("kernels.softmax.cross_entropy_grad")
sparse_cross_entropy_grad_.vjp(a=lambda g, probs, labels:
                               reduce_sum_(g * probs, axis=(g.ndim - 1,)) - pick_class_(g, labels))
sparse_cross_entropy_grad_.vjp(probs=lambda g, a: g * expand_dims(a, -1))


@primitive(linear="x")
def pick_class_(xp: ArrayModule, x: Array, labels: Array) -> Array:
    """y[…] = x[…, labels[…]]."""
    return _at_labels(xp, x, xp.asarray(labels))


@pick_class_.defined
def _(x: Tensor, labels: Tensor) -> Tensor:
    chosen = s.where(is_class(labels, x.spec.shape[-1]), x, 0.0)
    return reduce_sum_(chosen, axis=(x.ndim - 1,))


pick_class_.infer(lambda x, labels: x.reshaped(x.shape[:-1]))
pick_class_.vjp(x=lambda g, x_spec, labels: place_class_(g, labels, classes=x_spec.shape[-1]))


@primitive(linear="x")
def place_class_(xp: ArrayModule, x: Array, labels: Array, *, classes: int) -> Array:
    """y[…, labels[…]] = x[…] and 0 elsewhere: the adjoint of pick_class_."""
    rows = xp.zeros((x.size, classes), x.dtype)
    rows[_cells(xp, labels, classes)] = x.reshape(-1)
    return rows.reshape((*x.shape, classes))


place_class_.defined(lambda x, labels, *, classes:
                     s.where(is_class(labels, classes), expand_dims(x, -1), 0.0))
place_class_.infer(lambda x, labels, *, classes: x.reshaped((*x.shape, classes)))
place_class_.vjp(x=lambda g, labels: pick_class_(g, labels))


# The rule for logits is exact for labels that sum to 1, so they are given.
softmax_cross_entropy_.cases = [
    case((4, 3), [[0.2, 0.3, 0.5]] * 4, orders=1, dtypes=("float64",))]
# In host memory it raises for a label that is no class, also where nobody reads the result.
sparse_softmax_cross_entropy_.refuses = True
sparse_softmax_cross_entropy_.cases = [case((4, 3), ints(4, below=3)), case((3,), ints(below=3))]
cross_entropy_grad_.cases = [case((4,), (4, 3), (4, 3))]
sparse_cross_entropy_grad_.cases = [case((4,), (4, 3), ints(4, below=3))]
pick_class_.cases = [case((2, 3), ints(2, below=3))]
place_class_.cases = [case((2,), ints(2, below=3), classes=3)]


# ---------------------------------------------------------------- softmax cross entropy
def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, axis: IntsLike = -1,
                                      name: str | None = None) -> Tensor:
    """-Σ labels log softmax(logits) along `axis`.

    The gradient for the logits is softmax - labels even where labels do not sum to 1; labels get
    the gradient -log softmax. Labels are cast to the dtype of the logits.

    Raises InvalidArgumentError: shapes that do not fit, no such axis, integer logits."""
    name = "softmax_cross_entropy_with_logits"
    x = convert(logits)
    # Not like the logits: integer labels are allowed, and cast.
    y = cast(convert(labels, None, x._t.device), x.dtype)
    scores_spec(name, x.spec)
    (at,) = normal_axes(name, as_int(axis, f"{name}: axis"), x.ndim)
    if x.spec.shape != y.spec.shape:
        shape = broadcast_shapes(name, y.spec, x.spec)
        x, y = (t if t.spec.shape == shape else broadcast_to_(t, shape=shape) for t in (x, y))
    # Kernels and rules take the classes last.
    if at != x.ndim - 1:
        perm = (*range(at), *range(at + 1, x.ndim), at)
        x, y = transpose_(x, perm=perm), transpose_(y, perm=perm)
    return softmax_cross_entropy_(x, y)[0]


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
    y = convert(labels, None, x._t.device)
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
    d_x=lambda g, x, z: g * (s.sigmoid(x) - z), d_z=lambda g, x: -g * x)


def _same_shape(name: str, labels: TensorLike, logits: TensorLike) -> tuple[Tensor, Tensor]:
    if labels is None or logits is None:
        raise ValueError(f"{name} needs both labels and logits; got labels={shown(labels)}, "
                         f"logits={shown(logits)}")
    # Labels first: integers beside logits that are lists too are refused, as in TensorFlow.
    z, x = pair(name, labels, logits)
    if x.spec.shape != z.spec.shape:
        raise ValueError(f"{name}: logits and labels must have the same shape; got logits "
                         f"{x.spec}, labels {z.spec}. Reshape one of them")
    return z, x


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None,
                                      name: str | None = None) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)) for logits x and labels z, without overflow.
    Raises ValueError: shapes that differ, or an argument is missing;
    InvalidArgumentError: dtypes that differ, or no real floating numbers."""
    z, x = _same_shape("sigmoid_cross_entropy_with_logits", labels, logits)
    return sigmoid_cross_entropy_(x, z)


def _weighted_cross_entropy(x: Any, z: Any, q: Any) -> Expr:
    """(1 - z) x + (1 + (q - 1) z) softplus(-x)."""
    # relu and abs have the slope 0 at 0, which is part of TensorFlow's gradient here.
    return (1 - z) * x + (1 + (q - 1) * z) * (s.log1p(s.exp(-s.real_abs(x))) + relu(-x))


weighted_cross_entropy_ = scalar_function(_weighted_cross_entropy, types="real_float",
                                          name="weighted_cross_entropy", domain=(0.1, 2.0))


def weighted_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike,
                                       pos_weight: SupportsFloat, name: str | None = None,
                                       ) -> Tensor:
    """-q z log σ(x) - (1 - z) log(1 - σ(x)), where the weight q of positives may broadcast.
    Raises ValueError: the shapes of labels z and logits x differ;
    InvalidArgumentError: dtypes that differ, or no real floating numbers."""
    z, x = _same_shape("weighted_cross_entropy_with_logits", labels, logits)
    return weighted_cross_entropy_(x, z, pos_weight)


# ---------------------------------------------------------------- other losses
def _poisson_loss(z: Any, c: Any) -> Expr:
    """e^c - z c."""
    return s.exp(c) - c * z


def _stirling(z: Any) -> Expr:
    """z log z - z + log(2π z) / 2 for z > 1, else 0: Stirling's approximation of log z!."""
    # Not where 0 <= z <= 1, as in TensorFlow: it is off by 0.08 at z = 1, where log z! is 0.
    full = z * s.log(z) - z + 0.5 * s.log((2 * math.pi) * z)
    return s.where((z >= 0) & (z <= 1), 0, full)


poisson_loss_ = scalar_function(_poisson_loss, types="real_float", name="log_poisson_loss")
stirling_ = scalar_function(_stirling, types="real_float", name="stirling", domain=(1.5, 3.0))


def log_poisson_loss(targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False,
                     name: str | None = None) -> Tensor:
    """e^c - z c for log input c and targets z: -log of the Poisson probability up to a constant.

    Args:
        compute_full_loss: add Stirling's approximation of log z! for targets above 1.

    Raises ValueError: shapes that differ."""
    z, c = _same_shape("log_poisson_loss", targets, log_input)
    loss = poisson_loss_(z, c)
    return loss + stirling_(z) if compute_full_loss else loss


@primitive(tf_name="L2Loss")
def l2_loss_(xp: ArrayModule, t: Array) -> Array:
    """y = Σ t² / 2."""
    return xp.asarray(squares(working(xp, t)) * 0.5).astype(t.dtype)


l2_loss_.defined(lambda t: s.multiply(reduce_sum_(s.square(t), axis=tuple(range(t.ndim))), 0.5))
l2_loss_.infer(lambda t: taken("l2_loss", "real floating tensors", t).reshaped(()))
l2_loss_.vjp(t=lambda g, t: g * t)
l2_loss_.cases = [case((2, 3)), case(())]


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Σ t² / 2 over all elements. Raises InvalidArgumentError: not real floating numbers."""
    return l2_loss_(convert(t))


# ---------------------------------------------------------------- averages
def compute_average_loss(per_example_loss: TensorLike, sample_weight: TensorLike | None = None,
                         global_batch_size: int | None = None) -> Tensor:
    """Σ loss / batch size, each example weighted; 0 for an empty batch.
    Raises ValueError: the loss is a scalar, or the batch size is negative."""
    loss = convert(per_example_loss)
    if not loss.ndim:
        raise ValueError(f"compute_average_loss: per_example_loss must have rank 1 or more; got "
                         f"{loss.spec}. Do not reduce the loss before")
    if sample_weight is not None:
        weight = convert_like(sample_weight, loss._t, "compute_average_loss: sample_weight")
        # A weight for each example counts for all that is computed of it.
        rest = (1,) * (loss.ndim - weight.ndim)
        loss = loss * (reshape_(weight, shape=weight.spec.shape + rest) if rest else weight)
    size = loss.spec.shape[0] if global_batch_size is None else as_int(
        global_batch_size, "compute_average_loss: global_batch_size")
    if size < 0:
        raise ValueError(f"compute_average_loss: global_batch_size must not be negative; "
                         f"got {size}")
    # An empty batch has the loss 0, not nan.
    return s.divide_no_nan(reduce_sum(loss), convert_like(float(size), loss._t, "batch size"))


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """The sum of the loss: there is one replica."""
    return reduce_sum(regularization_loss)

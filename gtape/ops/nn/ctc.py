"""CTC: the loss of labels that are shorter than the frames they are spread over, and decoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import ctc
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int
from gtape.ops.elementwise.scalars import minimum, multiply
from gtape.ops.indexing.segments import unsorted_segment_sum
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import broadcast_to_, expand_dims, transpose_
from gtape.ops.sparse.conversions import to_dense
from gtape.ops.sparse.tensor import SparseTensor


@primitive(tf_name="CTCLoss")
def ctc_loss_(xp: Any, logits: Array, labels: Array, label_length: Array, logit_length: Array, *,
              blank: int) -> Array:
    """-log Σ over alignments of the probability of each label: [B], of logits [T, B, C]."""
    logp, _ = ctc.log_softmax(xp, logits, None)
    frames = ctc.frames(xp, logp, None, labels, label_length, logit_length, blank)
    made, _ = ctc.loss(xp, frames, ctc.forward(xp, frames)[-1])
    return xp.where(xp.isfinite(made), made, ctc.NO_PATH).astype(logits.dtype)


@ctc_loss_.infer
def _(logits: Spec, labels: Spec, label_length: Spec, logit_length: Spec, *, blank: int) -> Spec:
    batch = logits.shape[1:2]
    whole = all(x.dtype.is_integer for x in (labels, label_length, logit_length))
    if logits.ndim != 3 or not logits.dtype.is_floating or not whole or (
            labels.ndim != 2 or labels.shape[:1] != batch) or (
            not label_length.shape == logit_length.shape == batch):
        raise InvalidArgumentError(
            f"ctc_loss takes floating logits [frames, batch, classes], integer labels [batch, "
            f"length], and label_length and logit_length [batch]; got {logits}, {labels}, "
            f"{label_length}, {logit_length}")
    if not 0 <= blank < logits.shape[2]:
        raise InvalidArgumentError(f"ctc_loss: blank_index must be a class of {logits}; got "
                                   f"{blank}")
    return logits.reshaped(batch)


@ctc_loss_.vjp("logits")
def _(g: Tensor, logits: Tensor, labels: Tensor, label_length: Tensor, logit_length: Tensor, *,
      blank: int) -> Tensor:
    slope = ctc_slope_(logits, labels, label_length, logit_length, blank=blank)
    return multiply(expand_dims(g, -1), slope)


@primitive(tf_name="CTCLossGrad")
def ctc_slope_(xp: ArrayModule, logits: Array, labels: Array, label_length: Array,
               logit_length: Array, *, blank: int) -> Array:
    """The derivative of ctc_loss in the logits: softmax, less the probabilities given the label."""
    return ctc.slope(xp, logits, None, labels, label_length, logit_length, blank)


ctc_slope_.infer(lambda logits, labels, label_length, logit_length, **_: logits)
# A matrix of second derivatives is its own transpose.
ctc_slope_.vjp(logits=lambda g, logits, labels, label_length, logit_length, *, blank:
               ctc_curve_(twice_(logits), g, labels, label_length, logit_length, blank=blank))


@primitive(tf_name="CTCLossGradGrad")
def twice_(xp: ArrayModule, logits: Array) -> Array:
    """The logits as `ctc_curve_` reads them: here the third derivative is refused."""
    return logits


twice_.infer(lambda logits: logits)


@primitive(linear="direction")
def ctc_curve_(xp: ArrayModule, logits: Array, direction: Array, labels: Array, label_length: Array,
               logit_length: Array, *, blank: int) -> Array:
    """The second derivative of ctc_loss along a direction; none is defined in the logits."""
    return ctc.slope(xp, logits, direction, labels, label_length, logit_length, blank)


ctc_curve_.infer(lambda logits, direction, labels, label_length, logit_length, **_: logits)
ctc_curve_.vjp(direction=lambda g, logits, labels, label_length, logit_length, *, blank:
               ctc_curve_(logits, g, labels, label_length, logit_length, blank=blank))


_LABELS = (np.array([[1, 2], [2, 2], [1, 0]], np.int32), np.array([2, 2, 1], np.int32),
           np.array([4, 3, 2], np.int32))
ctc_loss_.cases = [case((4, 3, 3), *_LABELS, blank=0)]
ctc_slope_.cases = [case((4, 3, 3), *_LABELS, blank=0, orders=1)]
ctc_curve_.cases = [case((4, 3, 3), (4, 3, 3), *_LABELS, blank=0, dtypes=("float32",))]


def _row_lengths(labels: SparseTensor) -> Tensor:
    """How many values each row holds; they stand at its begin."""
    rows = labels.indices[:, 0]
    ones = broadcast_to_(convert(1, dtypes.int32, rows._t.device), shape=rows.spec.shape)
    return unsorted_segment_sum(ones, rows, labels.shape[0])


def ctc_loss(labels: TensorLike | SparseTensor, logits: TensorLike,
             label_length: TensorLike | None, logit_length: TensorLike,
             logits_time_major: bool = True, unique: object = None, blank_index: int | None = None,
             name: str | None = None) -> Tensor:
    """-log of the probability of each label, over all alignments with the frames: [batch].

    Graves et al. 2006, "Connectionist temporal classification". Frames emit a class or the blank;
    repeated classes are merged, then blanks dropped. float16 and bfloat16 are computed in float32.
    Where no alignment fits into the frames, the loss is 706.9 and its gradient 0. What is no class
    in a label is emitted by any frame at no cost, as in TensorFlow. Twice differentiable.

    Args:
        labels: [batch, length] integers, or a SparseTensor of them with `blank_index`.
        logits: [frames, batch, classes], or [batch, frames, classes] where not
            `logits_time_major`; softmax is taken of them.
        label_length: how much of each label there is; not read for a SparseTensor.
        logit_length: how many frames of each sequence there are.
        unique: not needed.
        blank_index: the class of the blank, 0 unless given; a negative one counts from the end.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit, or there is no such blank.
        ValueError: a SparseTensor without `blank_index`.
    """
    x = convert(logits)
    if x.ndim != 3:
        raise InvalidArgumentError(f"ctc_loss takes logits of three axes; got {x.spec}")
    if not logits_time_major:
        x = transpose_(x, perm=(1, 0, 2))
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("ctc_loss: give blank_index with labels that are a SparseTensor")
        label_length, labels = _row_lengths(labels), to_dense(labels)
    blank = 0 if blank_index is None else as_int(blank_index, "ctc_loss: blank_index")
    wide = x if x.dtype.size >= 4 else cast(x, dtypes.float32)
    device = x._t.device
    frames = minimum(convert(logit_length, None, device), x.spec.shape[0])
    y = ctc_loss_(wide, convert(labels, None, device), convert(label_length, None, device),
                     frames, blank=blank + x.spec.shape[2] if blank < 0 else blank)
    return y if y.dtype is x.dtype else cast(y, x.dtype)

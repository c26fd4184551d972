"""CTC: the loss of labels shorter than the frames they are spread over, and two ways to decode."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import FailedPreconditionError, InvalidArgumentError
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
from gtape.ops.sparse.layout import to_dense
from gtape.ops.sparse.tensor import SparseTensor


@primitive(tf_name="CTCLoss")
def ctc_loss_(xp: ArrayModule, logits: Array, labels: Array, label_length: Array,
              logit_length: Array, *, blank: int) -> Array:
    """-log Σ over alignments of the probability of each label: [B], of logits [T, B, C]."""
    logp, _ = ctc.log_softmax(xp, logits, None)
    frames = ctc.frames(xp, logp, None, labels, label_length, logit_length, blank)
    loss, _ = ctc.loss(xp, frames, ctc.forward(xp, frames)[-1])
    # Labels that fit into no alignment have probability 0: TensorFlow's finite number for -log 0.
    return xp.where(xp.isfinite(loss), loss, ctc.NO_PATH).astype(logits.dtype)


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
        blank_index: the class of the blank, 0 unless given; a negative one counts from the end.

    Raises InvalidArgumentError: shapes or dtypes do not fit, or there is no such blank;
    ValueError: a SparseTensor without `blank_index`."""
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
    # The sum over alignments spans more orders of magnitude than two bytes hold.
    wide = x if x.dtype.size >= 4 else cast(x, dtypes.float32)
    device = x._t.device
    frames = minimum(convert(logit_length, None, device), x.spec.shape[0])
    return cast(ctc_loss_(
        wide, convert(labels, None, device), convert(label_length, None, device), frames,
        blank=blank + x.spec.shape[2] if blank < 0 else blank), x.dtype)


Label = tuple[int, ...]


def _scores(name: str, inputs: np.ndarray, sequence_length: Sequence[int],
            ) -> tuple[Tensor, np.ndarray, list[int]]:
    """The scores, the same as an array [frames, batch, classes], and the lengths."""
    x, lengths = convert(inputs), convert(sequence_length)
    if x.ndim != 3 or x.dtype.name not in ("float32", "float64") or (
            not lengths.dtype.is_integer or lengths.spec.shape != x.spec.shape[1:2]):
        raise InvalidArgumentError(f"{name} takes float32 or float64 inputs [frames, batch, "
                                   f"classes] and integers sequence_length [batch]; got {x.spec}, "
                                   f"{lengths.spec}")
    counts = [int(n) for n in lengths._peek()]
    if any(not 0 <= n <= x.spec.shape[0] for n in counts):
        raise FailedPreconditionError(f"{name}: sequence_length must lie in [0, {x.spec.shape[0]}],"
                                      f" the number of frames; got {counts}")
    return x, x._peek(), counts


def _sparse(labels: Sequence[Sequence[int]]) -> SparseTensor:
    """Labels of each batch row as an int64 SparseTensor [batch, longest]."""
    places = [(b, i) for b, label in enumerate(labels) for i in range(len(label))]
    return SparseTensor(np.array(places, np.int64).reshape(-1, 2),
                        np.array([c for label in labels for c in label], np.int64),
                        np.array([len(labels), max(map(len, labels), default=0)], np.int64))


# ---------------------------------------------------------------- greedy
def _merged(path: Iterable[int], blank: int, merge: bool) -> list[int]:
    # Repeats are merged before blanks are dropped: a blank keeps two equal classes apart.
    return [c for c in ([c for c, _ in groupby(path)] if merge else path) if c != blank]


def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True,
                       blank_index: int | None = None) -> tuple[list[SparseTensor], Tensor]:
    """The class of the largest score of each frame, blanks dropped. Not differentiable.

    Args:
        inputs: scores [frames, batch, classes].
        sequence_length: how many frames of each there are, [batch].
        merge_repeated: one class in neighbouring frames counts once.
        blank_index: the class of the blank, the last unless given; a negative one counts from the
            end.

    Returns:
        ([labels], scores): an int64 SparseTensor [batch, longest], and less the sum of the largest
        scores, [batch, 1].

    Raises InvalidArgumentError: shapes or dtypes do not fit, or there is no such blank;
    FailedPreconditionError: a sequence is longer than there are frames."""
    x, scores, counts = _scores("ctc_greedy_decoder", inputs, sequence_length)
    classes = scores.shape[2]
    given = classes - 1 if blank_index is None else as_int(blank_index, "blank_index")
    blank = given + classes if given < 0 else given
    if not 0 <= blank < classes:
        raise InvalidArgumentError(f"ctc_greedy_decoder: blank_index must be a class of {x.spec}; "
                                   f"got {given}")
    best = scores.argmax(axis=2)
    labels = [_merged(best[:n, b].tolist(), blank, merge_repeated) for b, n in enumerate(counts)]
    # + 0.0 makes 0 of the -0 that no frames give.
    total = [[-scores[:n, b].max(axis=1).sum() + 0.0] for b, n in enumerate(counts)]
    return [_sparse(labels)], convert(np.array(total, scores.dtype).reshape(-1, 1))


# ---------------------------------------------------------------- beam search
def _log_sum(a: float, b: float) -> float:
    # The larger is taken out, so that the exponential cannot overflow; of -inf nothing is left,
    # where the difference would be nan.
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


#: By label: log probabilities of the paths to it that end in a blank, and in its last class.
_Beam = dict[Label, tuple[float, float]]


def _grown(beam: _Beam, row: list[float], blank: int, width: int) -> _Beam:
    """The beam after one more frame, whose log probabilities are `row`."""
    total = {label: _log_sum(*at) for label, at in beam.items()}
    grown: _Beam = {}
    for label, (_, ended) in beam.items():
        again = ended + row[label[-1]] if label else -math.inf
        if label and (parent := label[:-1]) in beam:
            # A class after itself is the same label unless a blank stood between.
            same = len(label) > 1 and label[-2] == label[-1]
            before = beam[parent][0] if same else total[parent]
            again = _log_sum(again, before + row[label[-1]])
        grown[label] = (total[label] + row[blank], again)
    for label in beam:
        for c, p in enumerate(row):
            if c == blank or (*label, c) in beam:
                continue
            before = beam[label][0] if label and label[-1] == c else total[label]
            grown[*label, c] = (-math.inf, before + p)
    if len(grown) <= width:
        return grown
    return dict(heapq.nlargest(width, grown.items(), key=lambda item: _log_sum(*item[1])))


def _best(rows: list[list[float]], blank: int, width: int, count: int) -> list[tuple[Label, float]]:
    """The `count` most probable labels, and the logs of their probabilities."""
    beam: _Beam = {(): (0.0, -math.inf)}
    for row in rows:
        beam = _grown(beam, row, blank, width)
    if len(beam) < count:
        raise InvalidArgumentError(f"ctc_beam_search_decoder: {count} paths are asked for; these "
                                   f"frames have {len(beam)}")
    parts = [(label, _log_sum(*at)) for label, at in beam.items()]
    return heapq.nlargest(count, parts, key=lambda item: item[1])


def ctc_beam_search_decoder(inputs: Any, sequence_length: Any, beam_width: int = 100,
                            top_paths: int = 1) -> tuple[list[SparseTensor], Tensor]:
    """The most probable labels, by a search that keeps `beam_width` of them at each frame.

    The probability of a label is that of all alignments with it; the blank is the last class. Not
    differentiable.

    Args:
        inputs: scores [frames, batch, classes], of which softmax is taken.
        sequence_length: how many frames of each there are, [batch].
        top_paths: how many labels to give for each, the most probable first.

    Returns:
        (labels, log probabilities): `top_paths` int64 SparseTensors [batch, longest], and
        [batch, top_paths].

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit; more paths than the beam is wide, or
            than there are.
        FailedPreconditionError: a sequence is longer than there are frames.
    """
    x, scores, counts = _scores("ctc_beam_search_decoder", inputs, sequence_length)
    width, count = as_int(beam_width, "beam_width"), as_int(top_paths, "top_paths")
    if not 1 <= count <= width:
        raise InvalidArgumentError(f"ctc_beam_search_decoder: top_paths must lie in [1, beam_width]"
                                   f"; got {count} and {width}")
    if not scores.shape[2]:
        raise InvalidArgumentError(f"ctc_beam_search_decoder: there must be a class; got {x.spec}")
    # In float64, since the sums of thousands of frames' logs lose digits; softmax of the scores
    # less their largest cannot overflow.
    wide = scores.astype(np.float64)
    wide -= wide.max(axis=2, keepdims=True, initial=-np.inf)
    logs = wide - np.log(np.exp(wide).sum(axis=2, keepdims=True))
    parts = [_best(logs[:n, b].tolist(), scores.shape[2] - 1, width, count)
             for b, n in enumerate(counts)]
    labels = [_sparse([paths[i][0] for paths in parts]) for i in range(count)]
    chances = np.array([[p for _, p in paths] for paths in parts], scores.dtype)
    return labels, convert(chances.reshape(len(parts), count))

"""CTC decoding: the most probable labels of frames of scores, greedily or by beam search."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import FailedPreconditionError, InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.sparse.tensor import SparseTensor

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
    made, last = [], blank
    for c in path:
        if c != blank and not (merge and c == last):
            made.append(c)
        last = c
    return made


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

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit, or there is no such blank.
        FailedPreconditionError: a sequence is longer than there are frames.
    """
    x, scores, counts = _scores("ctc_greedy_decoder", inputs, sequence_length)
    classes = scores.shape[2]
    given = classes - 1 if blank_index is None else as_int(blank_index, "blank_index")
    blank = given + classes if given < 0 else given
    if not 0 <= blank < classes:
        raise InvalidArgumentError(f"ctc_greedy_decoder: blank_index must be a class of {x.spec}; "
                                   f"got {given}")
    best = scores.argmax(axis=2)
    labels = [_merged(best[:n, b].tolist(), blank, merge_repeated) for b, n in enumerate(counts)]
    total = [[-scores[:n, b].max(axis=1).sum() + 0.0] for b, n in enumerate(counts)]
    return [_sparse(labels)], convert(np.array(total, scores.dtype).reshape(-1, 1))


# ---------------------------------------------------------------- beam search
def _log_sum(a: float, b: float) -> float:
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
        again = -math.inf
        if label:
            again = ended
            parent = label[:-1]
            if parent in beam:
                same = len(label) > 1 and label[-2] == label[-1]
                again = _log_sum(again, beam[parent][0] if same else total[parent])
            again += row[label[-1]]
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
    wide = scores.astype(np.float64)
    wide -= wide.max(axis=2, keepdims=True, initial=-np.inf)
    logs = wide - np.log(np.exp(wide).sum(axis=2, keepdims=True))
    parts = [_best(logs[:n, b].tolist(), scores.shape[2] - 1, width, count)
             for b, n in enumerate(counts)]
    labels = [_sparse([paths[i][0] for paths in parts]) for i in range(count)]
    chances = np.array([[p for _, p in paths] for paths in parts], scores.dtype)
    return labels, convert(chances.reshape(len(parts), count))

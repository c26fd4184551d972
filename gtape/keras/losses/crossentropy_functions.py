"""Cross entropies, per example."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert
from gtape.core.dtypes import int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.keras.config import epsilon
from gtape.keras.losses.loss import one_rank, pair
from gtape.ops.casting import cast
from gtape.ops.clipping import clip_by_value
from gtape.ops.creation import one_hot, zeros_like
from gtape.ops.layout import reshape, transpose
from gtape.ops.losses import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from gtape.ops.reductions import reduce_mean, reduce_sum
from gtape.ops.scalars import equal, log, sigmoid, where
from gtape.ops.softmax import softmax


def _open(p: Any) -> Any:
    """Probabilities held within [epsilon, 1 - epsilon]."""
    return clip_by_value(p, epsilon(), 1.0 - epsilon())


def _binary_terms(y: Any, p: Any) -> Any:
    p = _open(p)
    return -(y * log(p) + (1.0 - y) * log(1.0 - p))


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False,
                        label_smoothing: float = 0.0, axis: int = -1) -> Tensor:
    """Mean over `axis` of -y log p - (1 - y) log(1 - p); p = sigmoid(y_pred) with from_logits."""
    true, pred = one_rank(*pair(y_true, y_pred))
    y: Any = true
    if label_smoothing:
        y = y * (1.0 - label_smoothing) + 0.5 * label_smoothing
    terms = sigmoid_cross_entropy_with_logits(y, pred) if from_logits else _binary_terms(y, pred)
    return reduce_mean(terms, axis=axis)


def binary_focal_crossentropy(y_true: Any, y_pred: Any, apply_class_balancing: bool = False,
                              alpha: float = 0.25, gamma: float = 2.0,
                              from_logits: bool = False, label_smoothing: float = 0.0,
                              axis: int = -1) -> Tensor:
    """Binary cross entropy times (1 - probability of the right class)^gamma.

    Lin et al. 2017, arXiv:1708.02002.
    """
    true, pred = one_rank(*pair(y_true, y_pred))
    y: Any = true
    p: Any = sigmoid(pred) if from_logits else pred
    if label_smoothing:
        y = y * (1.0 - label_smoothing) + 0.5 * label_smoothing
    right = y * p + (1.0 - y) * (1.0 - p)
    terms = (1.0 - right) ** gamma * _binary_terms(y, p)
    if apply_class_balancing:
        terms = (y * alpha + (1.0 - y) * (1.0 - alpha)) * terms
    return reduce_mean(terms, axis=axis)


def _smoothed(y: Any, amount: float, axis: int) -> Any:
    return y * (1.0 - amount) + amount / y.shape[axis] if amount else y


def _check_classes(y: Tensor, p: Tensor) -> None:
    if y.spec.shape != p.spec.shape:
        raise InvalidArgumentError(
            f"categorical cross entropy: y_true and y_pred must have one shape; got {y.spec} and "
            f"{p.spec}. For class numbers use the sparse categorical cross entropy")


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False,
                             label_smoothing: float = 0.0, axis: int = -1) -> Any:
    """-Σ y log p over the classes; p is y_pred over its sum, or its softmax with from_logits.

    Raises:
        InvalidArgumentError: the shapes differ.
    """
    true, pred = pair(y_true, y_pred)
    _check_classes(true, pred)
    y = _smoothed(true, label_smoothing, axis)
    if from_logits:
        return softmax_cross_entropy_with_logits(y, pred, axis)
    p = _open(pred / reduce_sum(pred, axis=axis, keepdims=True))  # type: ignore[operator]
    return -reduce_sum(y * log(p), axis=axis)  # type: ignore[operator]


def categorical_focal_crossentropy(y_true: Any, y_pred: Any, alpha: Any = 0.25,
                                   gamma: float = 2.0, from_logits: bool = False,
                                   label_smoothing: float = 0.0, axis: int = -1) -> Tensor:
    """-Σ alpha (1 - p)^gamma y log p over the classes. Lin et al. 2017, arXiv:1708.02002."""
    true, pred = pair(y_true, y_pred)
    _check_classes(true, pred)
    y = _smoothed(true, label_smoothing, axis)
    p: Any = softmax(pred, axis) if from_logits else pred
    p = _open(p / reduce_sum(p, axis=axis, keepdims=True))
    return reduce_sum(alpha * (1.0 - p) ** gamma * (-y * log(p)), axis=axis)


def _class_numbers(y_true: Any, pred: Tensor) -> Tensor:
    numbers = convert(y_true)
    if numbers.ndim == pred.ndim and numbers.spec.shape[-1:] == (1,):
        numbers = reshape(numbers, numbers.spec.shape[:-1])
    return numbers if numbers.dtype.is_integer else cast(numbers, int64)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False,
                                    ignore_class: int | None = None, axis: int = -1) -> Any:
    """-log p of the class whose number y_true holds; 0 where that is `ignore_class`.

    p is y_pred over its sum, or its softmax with from_logits.

    Raises:
        InvalidArgumentError: a number outside [0, classes), or shapes that do not fit.
    """
    pred = convert(y_pred)
    numbers = _class_numbers(y_true, pred)
    if axis not in (-1, pred.ndim - 1):
        pred = transpose(pred, [a for a in range(pred.ndim) if a != axis % pred.ndim]
                         + [axis % pred.ndim])
    scores = pred if from_logits else log(_open(pred))
    if ignore_class is None:
        return sparse_softmax_cross_entropy_with_logits(numbers, scores)
    kept = equal(numbers, ignore_class)
    known = where(kept, zeros_like(numbers), numbers)
    losses = sparse_softmax_cross_entropy_with_logits(known, scores)
    return where(kept, zeros_like(losses), losses)


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> Any:
    """(1 - p^q) / q, with p the probability of the class in y_true: robust to wrong labels.

    Zhang & Sabuncu 2018, arXiv:1805.07836.
    """
    pred: Any = convert(y_pred)
    chosen = one_hot(cast(_class_numbers(y_true, pred), int32), pred.shape[-1], dtype=pred.dtype)
    return (1.0 - reduce_sum(pred * chosen, axis=-1) ** q) / q  # type: ignore[operator]

"""Losses of numbers, per example: squares, absolute values, angles, divergences, margins."""

from __future__ import annotations

import math
from typing import Any

from gtape.core.tensor import Tensor
from gtape.keras.config import epsilon
from gtape.keras.losses.loss import one_rank, pair
from gtape.ops.activations import softplus
from gtape.ops.clipping import clip_by_value
from gtape.ops.more_reductions import reduce_all
from gtape.ops.reductions import reduce_max, reduce_mean, reduce_sum
from gtape.ops.scalars import (
    equal,
    log,
    log1p,
    logical_or,
    maximum,
    real_abs,
    square,
    squared_difference,
    subtract,
    where,
)


def _prepared(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    return one_rank(*pair(y_true, y_pred))


def squared_terms(y_true: Any, y_pred: Any) -> Any:
    """(y_pred - y_true)², element by element."""
    return squared_difference(y_pred, y_true)


def absolute_terms(y_true: Any, y_pred: Any) -> Any:
    """|y_true - y_pred|, element by element."""
    return real_abs(subtract(y_true, y_pred))


def huber_terms(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """e² / 2 up to |e| = delta, then delta |e| - delta² / 2."""
    error = subtract(y_pred, y_true)
    size = real_abs(error)
    return where(size <= delta, 0.5 * square(error), delta * size - 0.5 * delta * delta)


def log_cosh_terms(y_true: Any, y_pred: Any) -> Any:
    """log cosh(y_pred - y_true), without overflow."""
    error = subtract(y_pred, y_true)
    return error + softplus(-2.0 * error) - math.log(2.0)


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of (y_true - y_pred)² over the last axis."""
    return reduce_mean(squared_terms(*_prepared(y_true, y_pred)), axis=-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of |y_true - y_pred| over the last axis."""
    return reduce_mean(absolute_terms(*_prepared(y_true, y_pred)), axis=-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """100 times the mean of |y_true - y_pred| / max(|y_true|, epsilon)."""
    true, pred = _prepared(y_true, y_pred)
    share = real_abs((true - pred) / maximum(real_abs(true), epsilon()))  # type: ignore[operator]
    return 100.0 * reduce_mean(share, axis=-1)  # type: ignore[operator]


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of (log(1 + y_true) - log(1 + y_pred))², both held at epsilon or above."""
    true, pred = _prepared(y_true, y_pred)
    logs = [log1p(maximum(t, epsilon())) for t in (pred, true)]
    return reduce_mean(squared_difference(*logs), axis=-1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Quadratic for errors up to delta, linear beyond. Huber 1964."""
    return reduce_mean(huber_terms(*_prepared(y_true, y_pred), delta), axis=-1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of log cosh of the error."""
    return reduce_mean(log_cosh_terms(*_prepared(y_true, y_pred)), axis=-1)


def _unit(x: Any, axis: int) -> Any:
    """x / ‖x‖, with the norm held above epsilon."""
    norm = reduce_sum(square(x), axis=axis, keepdims=True)
    return x / maximum(norm, epsilon() ** 2) ** 0.5  # type: ignore[operator]


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Minus the cosine of the angle between the vectors along `axis`."""
    true, pred = _prepared(y_true, y_pred)
    return -reduce_sum(_unit(true, axis) * _unit(pred, axis), axis=axis)  # type: ignore[operator]


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of y_pred - y_true log(y_pred + epsilon)."""
    true, pred = _prepared(y_true, y_pred)
    return reduce_mean(pred - true * log(pred + epsilon()), axis=-1)  # type: ignore[operator]


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Σ y_true log(y_true / y_pred), both held in [epsilon, 1]."""
    true, pred = (clip_by_value(t, epsilon(), 1.0) for t in pair(y_true, y_pred))
    return reduce_sum(true * log(true / pred), axis=-1)  # type: ignore[operator]


def _signs(labels: Any) -> Any:
    """Labels 0 and 1 as -1 and 1; others stay. Decided where the labels are."""
    binary = reduce_all(logical_or(equal(labels, 0.0), equal(labels, 1.0)))
    return where(binary, 2.0 * labels - 1.0, labels)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of max(1 - y_true y_pred, 0), for labels -1 and 1 (or 0 and 1)."""
    true, pred = _prepared(y_true, y_pred)
    return reduce_mean(maximum(1.0 - _signs(true) * pred, 0.0), axis=-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Mean of max(1 - y_true y_pred, 0)², for labels -1 and 1 (or 0 and 1)."""
    true, pred = _prepared(y_true, y_pred)
    return reduce_mean(square(maximum(1.0 - _signs(true) * pred, 0.0)), axis=-1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """max(largest wrong score - right score + 1, 0), for one-hot y_true."""
    true, pred = _prepared(y_true, y_pred)
    right = reduce_sum(true * pred, axis=-1)  # type: ignore[operator]
    wrong = reduce_max((1.0 - true) * pred, axis=-1)  # type: ignore[operator]
    return maximum(wrong - right + 1.0, 0.0)  # type: ignore[operator]

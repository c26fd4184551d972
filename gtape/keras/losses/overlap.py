"""Losses of regions and of embeddings: Dice, Tversky, Circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import int32
from gtape.keras.config import epsilon
from gtape.keras.losses.loss import LossFunctionWrapper, one_rank, pair
from gtape.ops.activations import relu, softplus
from gtape.ops.casting import cast
from gtape.ops.creation import eye
from gtape.ops.layout import expand_dims, reshape
from gtape.ops.more_reductions import reduce_logsumexp
from gtape.ops.products import matmul
from gtape.ops.reductions import reduce_sum
from gtape.ops.scalars import equal, greater, logical_and, logical_not, where


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Any:
    """1 - 2 Σ t p / (Σ t + Σ p) over `axis`: how little two regions overlap."""
    t, p = one_rank(*pair(y_true, y_pred))
    both: Any = reduce_sum(t * p, axis=axis)  # type: ignore[operator]
    sizes: Any = reduce_sum(t, axis=axis) + reduce_sum(p, axis=axis)  # type: ignore[operator]
    return 1.0 - 2.0 * both / (sizes + epsilon())


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5,
            axis: Any = None) -> Any:
    """Dice with weights alpha and beta for what is missed and what is added. arXiv:1706.05721."""
    t: Any
    p: Any
    t, p = one_rank(*pair(y_true, y_pred))
    both: Any = reduce_sum(t * p, axis=axis)
    missed: Any = reduce_sum((1.0 - p) * t, axis=axis)
    added: Any = reduce_sum(p * (1.0 - t), axis=axis)
    return 1.0 - both / (both + missed * alpha + added * beta + epsilon())


def circle(y_true: Any, y_pred: Any, ref_labels: Any = None, ref_embeddings: Any = None,
           remove_diagonal: bool = True, gamma: float = 80, margin: float = 0.4) -> Any:
    """Near within a class, far between classes, for embeddings of length 1. arXiv:2002.10857."""
    x = convert(y_pred)
    others = x if ref_embeddings is None else convert(ref_embeddings)
    labels = reshape(cast(convert(y_true), int32), [-1])
    other_labels = labels if ref_labels is None else reshape(cast(convert(ref_labels), int32),
                                                             [-1])
    same = equal(expand_dims(labels, 1), expand_dims(other_labels, 0))
    different = logical_not(same)
    if remove_diagonal:
        same = logical_and(same, logical_not(cast(eye(*same.shape), "bool")))
    distance: Any = relu(1.0 - matmul(x, others, transpose_b=True))  # type: ignore[operator]
    near = -gamma * relu(margin + distance) * (margin - distance)
    far = gamma * relu(1.0 + margin - distance) * ((1.0 - margin) - distance)
    never = convert(np.asarray(-np.inf, x.dtype.np_dtype))
    totals = [reduce_logsumexp(where(chosen, weighted, never), axis=1)
              for chosen, weighted in ((same, near), (different, far))]
    return softplus(totals[0] + totals[1])


class Dice(LossFunctionWrapper):
    """1 - 2 Σ t p / (Σ t + Σ p): how little two regions overlap."""

    def __init__(self, reduction: str | None = "sum_over_batch_size", name: str | None = "dice",
                 axis: Any = None, dtype: Any = None) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """Dice with weights for what is missed and what is added. arXiv:1706.05721."""

    def __init__(self, alpha: float = 0.5, beta: float = 0.5,
                 reduction: str | None = "sum_over_batch_size", name: str | None = "tversky",
                 axis: Any = None, dtype: Any = None) -> None:
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)


class Circle(LossFunctionWrapper):
    """Near within a class, far between classes; the mean is over losses that are not 0.

    arXiv:2002.10857.
    """

    def __init__(self, gamma: float = 80.0, margin: float = 0.4, remove_diagonal: bool = True,
                 reduction: str | None = "sum_over_batch_size", name: str | None = "circle",
                 dtype: Any = None) -> None:
        super().__init__(circle, reduction, name, dtype, gamma=gamma, margin=margin,
                         remove_diagonal=remove_diagonal)

    def _counted(self, y_true: Any, values: Any) -> Any:
        return greater(values, 0.0)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._fn_kwargs)

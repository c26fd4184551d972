"""True and false positives and negatives at thresholds, precision and recall."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gtape.keras.metrics.metric import Metric, host, over, tensor


def flat_inputs(y_true: Any, y_pred: Any, sample_weight: Any,
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, predictions and weights, one number each for every prediction.

    Raises:
        ValueError: predictions outside [0, 1], or shapes that differ.
    """
    pred = host(y_pred).astype(np.float64)
    true = host(y_true).reshape(pred.shape) if host(y_true).size == pred.size else host(y_true)
    if true.shape != pred.shape:
        raise ValueError(f"labels and predictions must have one shape; got {true.shape} and "
                         f"{pred.shape}")
    if pred.size and (pred.min() < 0 or pred.max() > 1):
        raise ValueError(f"predictions must lie in [0, 1]; got {pred.min()} to {pred.max()}")
    weight = np.ones(pred.shape) if sample_weight is None else _weights(sample_weight, pred.shape)
    return true.reshape(-1).astype(bool), pred.reshape(-1), weight.reshape(-1)


def _weights(sample_weight: Any, shape: tuple[int, ...]) -> np.ndarray:
    found = host(sample_weight).astype(np.float64)
    while found.ndim < len(shape):
        found = found[..., None]
    return np.broadcast_to(found.reshape(shape) if found.size == np.prod(shape) else found, shape)


def counts(true: np.ndarray, pred: np.ndarray, weight: np.ndarray, thresholds: np.ndarray,
           ) -> np.ndarray:
    """[4, thresholds]: true positives, false positives, true negatives, false negatives, where
    pred > threshold counts as positive. `thresholds` ascend."""
    above = np.searchsorted(thresholds, pred, side="left")
    size = len(thresholds) + 1
    positives, negatives = (np.bincount(above[m], weight[m], size)[::-1].cumsum()[::-1][1:]
                            for m in (true, ~true))
    return np.stack([positives, negatives, weight[~true].sum() - negatives,
                     weight[true].sum() - positives])


def only_top(pred: np.ndarray, k: int) -> np.ndarray:
    """The k largest predictions of each row; the others become -1, below every threshold."""
    cut = np.partition(pred, -k, axis=-1)[..., [-k]]
    return np.where(pred >= cut, pred, -1.0)


class ThresholdCounts(Metric):
    """What is known at each threshold; `kinds` are rows of `counts`."""

    kinds: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)

    def __init__(self, thresholds: Any = None, top_k: int | None = None,
                 class_id: int | None = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(dtype, name)
        default = -1.0 if top_k is not None else 0.5
        given = np.atleast_1d(np.asarray(default if thresholds is None else thresholds, float))
        if thresholds is not None and ((given < 0) | (given > 1)).any():
            raise ValueError(f"thresholds must lie in [0, 1]; got {thresholds}")
        self.thresholds = given
        self._several = isinstance(thresholds, (list, tuple, np.ndarray)) and len(given) > 1
        self._order = np.argsort(given)
        self.top_k, self.class_id = top_k, class_id
        self.counted = [self.add_weight((len(given),), name=f"counted_{i}") for i in self.kinds]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.top_k is not None or self.class_id is not None:
            y_true, y_pred, sample_weight = self._selected(host(y_true), host(y_pred),
                                                           sample_weight)
        true, pred, weight = self._flat(y_true, y_pred, sample_weight)
        made = np.empty((4, len(self.thresholds)))
        made[:, self._order] = counts(true, pred, weight, self.thresholds[self._order])
        for kind, variable in zip(self.kinds, self.counted):
            self._add(variable, made[kind])

    def _flat(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Any:
        if self.top_k is None:
            return flat_inputs(y_true, y_pred, sample_weight)
        true, _, weight = flat_inputs(y_true, np.clip(y_pred, 0, 1), sample_weight)
        kept = np.where(np.asarray(y_pred) < 0, -2.0, np.asarray(y_pred))
        return true, kept.reshape(-1), weight

    def _selected(self, true: np.ndarray, pred: np.ndarray, weight: Any) -> Any:
        if self.top_k is not None:
            pred = only_top(pred.astype(float), self.top_k)
        if self.class_id is not None:
            true, pred = true[..., self.class_id], pred[..., self.class_id]
        return true, pred, weight

    def _shown(self, values: np.ndarray) -> Any:
        return tensor(values if self._several else values[0])

    def _kept(self) -> list[np.ndarray]:
        return [host(v) for v in self.counted]


class _Count(ThresholdCounts):
    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(thresholds, name=name, dtype=dtype)

    def result(self) -> Any:
        return self._shown(self._kept()[0])


class TruePositives(_Count):
    """How many positive examples were predicted so."""

    kinds = (0,)


class FalsePositives(_Count):
    """How many negative examples were predicted positive."""

    kinds = (1,)


class TrueNegatives(_Count):
    """How many negative examples were predicted so."""

    kinds = (2,)


class FalseNegatives(_Count):
    """How many positive examples were predicted negative."""

    kinds = (3,)


class Precision(ThresholdCounts):
    """True positives / all predicted positive.

    Args:
        thresholds: one or several; 0.5 unless given.
        top_k: only the k largest predictions of a row count as positive.
        class_id: look at this class only.
    """

    kinds = (0, 1)

    def result(self) -> Any:
        right, wrong = self._kept()
        return self._shown(over(right, right + wrong))


class Recall(ThresholdCounts):
    """True positives / all positive examples; arguments as `Precision`."""

    kinds = (0, 3)

    def result(self) -> Any:
        right, missed = self._kept()
        return self._shown(over(right, right + missed))

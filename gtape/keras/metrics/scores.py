"""F scores and the coefficient of determination."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.text import shown
from gtape.keras.config import epsilon
from gtape.keras.metrics.metric import Metric, host, over, tensor


class FBetaScore(Metric):
    """(1 + beta²) precision recall / (beta² precision + recall), for [examples, classes].

    Args:
        average: None for one score per class, 'micro', 'macro' or 'weighted'.
        beta: how much more recall counts than precision.
        threshold: above it a prediction is positive; None means the largest of the row is.

    Raises:
        ValueError: an unknown average, beta not positive, threshold outside (0, 1].
    """

    def __init__(self, average: str | None = None, beta: float = 1.0,
                 threshold: float | None = None, name: str | None = "fbeta_score",
                 dtype: Any = None) -> None:
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"average must be None, 'micro', 'macro' or 'weighted'; got "
                             f"{shown(average)}")
        if beta <= 0 or (threshold is not None and not 0 < threshold <= 1):
            raise ValueError(f"beta must be positive and threshold in (0, 1]; got {beta}, "
                             f"{threshold}")
        self.average, self.beta, self.threshold = average, beta, threshold
        self._built = False

    def _build(self, classes: int) -> None:
        shape = () if self.average == "micro" else (classes,)
        self.true_positives = self.add_weight(shape, name="true_positives")
        self.false_positives = self.add_weight(shape, name="false_positives")
        self.false_negatives = self.add_weight(shape, name="false_negatives")
        self.intermediate_weights = self.add_weight(shape, name="intermediate_weights")
        self._built = True

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        true, pred = host(y_true).astype(bool), host(y_pred)
        if pred.ndim != 2 or true.shape != pred.shape:
            raise ValueError(f"F scores take labels and predictions [examples, classes]; got "
                             f"{true.shape} and {pred.shape}")
        if not self._built:
            self._build(pred.shape[1])
        positive = (pred == pred.max(-1, keepdims=True)) & (np.abs(pred) > 1e-9) \
            if self.threshold is None else pred > self.threshold
        weight = 1.0 if sample_weight is None else host(sample_weight).reshape(-1, 1)
        axis = None if self.average == "micro" else 0
        for variable, hits in ((self.true_positives, positive & true),
                               (self.false_positives, positive & ~true),
                               (self.false_negatives, ~positive & true),
                               (self.intermediate_weights, true)):
            self._add(variable, (hits * weight).sum(axis=axis))

    def result(self) -> Any:
        if not self._built:
            return tensor(0.0)
        tp, fp, fn = (host(v).astype(float) for v in (
            self.true_positives, self.false_positives, self.false_negatives))
        precision, recall = over(tp, tp + fp), over(tp, tp + fn)
        square = self.beta**2
        score = precision * recall * (1 + square) / (square * precision + recall + epsilon())
        if self.average == "weighted":
            share = host(self.intermediate_weights).astype(float)
            return tensor(np.sum(score * over(share, share.sum())))
        return tensor(score if self.average is None else score.mean())


class F1Score(FBetaScore):
    """2 precision recall / (precision + recall)."""

    def __init__(self, average: str | None = None, threshold: float | None = None,
                 name: str | None = "f1_score", dtype: Any = None) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)


class R2Score(Metric):
    """1 - Σ (t - p)² / Σ (t - mean t)², for each output.

    Args:
        class_aggregation: None, 'uniform_average' or 'variance_weighted_average'.
        num_regressors: with it, the adjusted coefficient for so many inputs.
    """

    def __init__(self, class_aggregation: str | None = "uniform_average",
                 num_regressors: int = 0, name: str | None = "r2_score",
                 dtype: Any = None) -> None:
        super().__init__(dtype, name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError(f"class_aggregation must be None, 'uniform_average' or "
                             f"'variance_weighted_average'; got {shown(class_aggregation)}")
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self._built = False

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        true, pred = host(y_true).astype(float), host(y_pred).astype(float)
        if true.ndim != 2 or true.shape != pred.shape:
            raise ValueError(f"R2Score takes [examples, outputs] twice; got {true.shape} and "
                             f"{pred.shape}")
        if not self._built:
            shape = (true.shape[1],)
            names = ("squared_sum", "sum", "residual", "count")
            self._sums = [self.add_weight(shape, name=name, dtype="float64") for name in names]
            self._seen = self.add_weight(name="num_samples")
            self._built = True
        weight = np.ones((len(true), 1)) if sample_weight is None else host(
            sample_weight).reshape(-1, 1)
        parts = (weight * true**2, weight * true, weight * (true - pred) ** 2,
                 np.broadcast_to(weight, true.shape))
        for variable, part in zip(self._sums, parts):
            self._add(variable, part.sum(axis=0))
        self._add(self._seen, len(true))

    def result(self) -> Any:
        if not self._built:
            return tensor(0.0)
        squares, sums, residual, count = (host(v) for v in self._sums)
        spread = squares - sums * over(sums, count)
        score = 1 - over(residual, spread)
        if self.class_aggregation == "uniform_average":
            score = score.mean()
        elif self.class_aggregation == "variance_weighted_average":
            score = np.sum(score * over(spread, spread.sum()))
        left = float(host(self._seen)) - self.num_regressors - 1
        if self.num_regressors and left > 0:
            score = 1 - (1 - score) * (float(host(self._seen)) - 1) / left
        return tensor(score)

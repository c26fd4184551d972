"""How alike predictions and labels run: cosine, Pearson's and Lin's coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.keras.config import epsilon
from gtape.keras.metrics.means import MeanMetricWrapper
from gtape.keras.metrics.metric import host


def _unit(x: np.ndarray, axis: Any) -> np.ndarray:
    return x / np.sqrt(np.maximum((x * x).sum(axis=axis, keepdims=True), 1e-12))


def cosine_similarity(y_true: Any, y_pred: Any, axis: Any = -1) -> np.ndarray:
    """The cosine of the angle between the vectors along `axis`."""
    true, pred = host(y_true).astype(float), host(y_pred).astype(float)
    return (_unit(true, axis) * _unit(pred, axis)).sum(axis=axis)


def pearson_correlation(y_true: Any, y_pred: Any, axis: Any = -1) -> np.ndarray:
    """Covariance / product of standard deviations, along `axis`."""
    true, pred = (x - x.mean(axis=axis, keepdims=True) for x in (
        host(y_true).astype(float), host(y_pred).astype(float)))
    return (_unit(true, axis) * _unit(pred, axis)).sum(axis=axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: Any = -1) -> np.ndarray:
    """2 covariance / (both variances + squared distance of the means). Lin 1989, Biometrics 45."""
    true, pred = host(y_true).astype(float), host(y_pred).astype(float)
    means = [x.mean(axis=axis, keepdims=True) for x in (true, pred)]
    shared = ((true - means[0]) * (pred - means[1])).mean(axis=axis)
    apart = ((means[0] - means[1]) ** 2).mean(axis=axis)
    return 2 * shared / (true.var(axis=axis) + pred.var(axis=axis) + apart + epsilon())


class CosineSimilarity(MeanMetricWrapper):
    """The mean cosine of the angle between predictions and labels."""

    def __init__(self, name: str | None = "cosine_similarity", dtype: Any = None,
                 axis: Any = -1) -> None:
        super().__init__(cosine_similarity, name, dtype, axis=axis)


class PearsonCorrelation(MeanMetricWrapper):
    """The mean of Pearson's coefficient along `axis`."""

    def __init__(self, name: str | None = "pearson_correlation", dtype: Any = None,
                 axis: Any = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


class ConcordanceCorrelation(MeanMetricWrapper):
    """The mean of Lin's coefficient along `axis`."""

    def __init__(self, name: str | None = "concordance_correlation", dtype: Any = None,
                 axis: Any = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)

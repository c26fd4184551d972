"""Losses of numbers as classes."""

from __future__ import annotations

from typing import Any

from gtape.keras.losses import regression_functions as f
from gtape.keras.losses.loss import LossFunctionWrapper, MeanLoss

_MEAN = "sum_over_batch_size"


class MeanSquaredError(MeanLoss):
    """Mean of (y_true - y_pred)²."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_squared_error",
                 dtype: Any = None) -> None:
        super().__init__(f.mean_squared_error, f.squared_terms, reduction, name, dtype)


class MeanAbsoluteError(MeanLoss):
    """Mean of |y_true - y_pred|."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "mean_absolute_error",
                 dtype: Any = None) -> None:
        super().__init__(f.mean_absolute_error, f.absolute_terms, reduction, name, dtype)


class Huber(MeanLoss):
    """Quadratic for errors up to delta, linear beyond. Huber 1964."""

    def __init__(self, delta: float = 1.0, reduction: str | None = _MEAN,
                 name: str | None = "huber_loss", dtype: Any = None) -> None:
        super().__init__(f.huber, f.huber_terms, reduction, name, dtype, delta=delta)


class LogCosh(MeanLoss):
    """Mean of log cosh of the error."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "log_cosh",
                 dtype: Any = None) -> None:
        super().__init__(f.log_cosh, f.log_cosh_terms, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    """100 times the mean of |y_true - y_pred| / |y_true|."""

    def __init__(self, reduction: str | None = _MEAN,
                 name: str | None = "mean_absolute_percentage_error", dtype: Any = None) -> None:
        super().__init__(f.mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    """Mean of (log(1 + y_true) - log(1 + y_pred))²."""

    def __init__(self, reduction: str | None = _MEAN,
                 name: str | None = "mean_squared_logarithmic_error", dtype: Any = None) -> None:
        super().__init__(f.mean_squared_logarithmic_error, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    """Minus the cosine of the angle between the vectors along `axis`."""

    def __init__(self, axis: int = -1, reduction: str | None = _MEAN,
                 name: str | None = "cosine_similarity", dtype: Any = None) -> None:
        super().__init__(f.cosine_similarity, reduction, name, dtype, axis=axis)

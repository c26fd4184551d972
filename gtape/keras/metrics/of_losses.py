"""The losses as metrics: their mean over all examples."""

from __future__ import annotations

from typing import Any

from gtape.keras.losses import crossentropy_functions as c
from gtape.keras.losses import regression_functions as f
from gtape.keras.metrics.means import MeanMetricWrapper


class MeanSquaredError(MeanMetricWrapper):
    """The mean of (y_true - y_pred)²."""

    def __init__(self, name: str | None = "mean_squared_error", dtype: Any = None) -> None:
        super().__init__(f.mean_squared_error, name, dtype)


class MeanAbsoluteError(MeanMetricWrapper):
    """The mean of |y_true - y_pred|."""

    def __init__(self, name: str | None = "mean_absolute_error", dtype: Any = None) -> None:
        super().__init__(f.mean_absolute_error, name, dtype)


class MeanAbsolutePercentageError(MeanMetricWrapper):
    """100 times the mean of |y_true - y_pred| / |y_true|."""

    def __init__(self, name: str | None = "mean_absolute_percentage_error",
                 dtype: Any = None) -> None:
        super().__init__(f.mean_absolute_percentage_error, name, dtype)


class MeanSquaredLogarithmicError(MeanMetricWrapper):
    """The mean of (log(1 + y_true) - log(1 + y_pred))²."""

    def __init__(self, name: str | None = "mean_squared_logarithmic_error",
                 dtype: Any = None) -> None:
        super().__init__(f.mean_squared_logarithmic_error, name, dtype)


class LogCoshError(MeanMetricWrapper):
    """The mean of log cosh of the error."""

    def __init__(self, name: str | None = "logcosh", dtype: Any = None) -> None:
        super().__init__(f.log_cosh, name, dtype)


class Poisson(MeanMetricWrapper):
    """The mean of y_pred - y_true log(y_pred)."""

    def __init__(self, name: str | None = "poisson", dtype: Any = None) -> None:
        super().__init__(f.poisson, name, dtype)


class KLDivergence(MeanMetricWrapper):
    """The mean of Σ y_true log(y_true / y_pred)."""

    def __init__(self, name: str | None = "kl_divergence", dtype: Any = None) -> None:
        super().__init__(f.kl_divergence, name, dtype)


class Hinge(MeanMetricWrapper):
    """The mean of max(1 - y_true y_pred, 0)."""

    def __init__(self, name: str | None = "hinge", dtype: Any = None) -> None:
        super().__init__(f.hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """The mean of max(1 - y_true y_pred, 0)²."""

    def __init__(self, name: str | None = "squared_hinge", dtype: Any = None) -> None:
        super().__init__(f.squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """The mean of max(largest wrong score - right score + 1, 0)."""

    def __init__(self, name: str | None = "categorical_hinge", dtype: Any = None) -> None:
        super().__init__(f.categorical_hinge, name, dtype)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean of -y log p - (1 - y) log(1 - p)."""

    def __init__(self, name: str | None = "binary_crossentropy", dtype: Any = None,
                 from_logits: bool = False, label_smoothing: float = 0) -> None:
        super().__init__(c.binary_crossentropy, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing)


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean of -Σ y log p, for one-hot labels."""

    def __init__(self, name: str | None = "categorical_crossentropy", dtype: Any = None,
                 from_logits: bool = False, label_smoothing: float = 0, axis: int = -1) -> None:
        super().__init__(c.categorical_crossentropy, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean of -log p of the class whose number the label is."""

    def __init__(self, name: str | None = "sparse_categorical_crossentropy", dtype: Any = None,
                 from_logits: bool = False, axis: int = -1) -> None:
        super().__init__(c.sparse_categorical_crossentropy, name, dtype, from_logits=from_logits,
                         axis=axis)

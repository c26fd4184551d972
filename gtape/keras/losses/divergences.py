"""Losses of counts, distributions and margins as classes."""

from __future__ import annotations

from typing import Any

from gtape.keras.losses import regression_functions as f
from gtape.keras.losses.loss import LossFunctionWrapper

_MEAN = "sum_over_batch_size"


class Poisson(LossFunctionWrapper):
    """Mean of y_pred - y_true log(y_pred)."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "poisson",
                 dtype: Any = None) -> None:
        super().__init__(f.poisson, reduction, name, dtype)


class KLDivergence(LossFunctionWrapper):
    """Σ y_true log(y_true / y_pred). Kullback & Leibler 1951."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "kl_divergence",
                 dtype: Any = None) -> None:
        super().__init__(f.kl_divergence, reduction, name, dtype)


class Hinge(LossFunctionWrapper):
    """Mean of max(1 - y_true y_pred, 0), for labels -1 and 1 (or 0 and 1)."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "hinge",
                 dtype: Any = None) -> None:
        super().__init__(f.hinge, reduction, name, dtype)


class SquaredHinge(LossFunctionWrapper):
    """Mean of max(1 - y_true y_pred, 0)²."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "squared_hinge",
                 dtype: Any = None) -> None:
        super().__init__(f.squared_hinge, reduction, name, dtype)


class CategoricalHinge(LossFunctionWrapper):
    """max(largest wrong score - right score + 1, 0), for one-hot y_true."""

    def __init__(self, reduction: str | None = _MEAN, name: str | None = "categorical_hinge",
                 dtype: Any = None) -> None:
        super().__init__(f.categorical_hinge, reduction, name, dtype)

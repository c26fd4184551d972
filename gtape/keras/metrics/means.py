"""Sums and means of values, weighted or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.keras.losses.loss import one_rank
from gtape.keras.metrics.metric import Metric, host, over, tensor


def by_example(values: Any, sample_weight: Any, reduce: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values times weights, weights): one number each for every example, where `reduce` brings
    the other axes together."""
    numbers = np.asarray(host(values), np.float64)
    if sample_weight is None:
        numbers = _rows(numbers, 1, reduce)
        return numbers, np.ones_like(numbers)
    weights = np.asarray(host(sample_weight), np.float64)
    if weights.ndim == numbers.ndim + 1 and weights.shape[-1] == 1:
        weights = weights[..., 0]
    elif numbers.ndim == weights.ndim + 1 and numbers.shape[-1] == 1:
        numbers = numbers[..., 0]
    numbers = _rows(numbers, weights.ndim, reduce)
    weights = np.broadcast_to(weights, numbers.shape)
    return _rows(numbers * weights, 1, reduce), _rows(weights, 1, reduce)


def _rows(array: np.ndarray, ndim: int, reduce: Any) -> np.ndarray:
    """`array` with the axes from `ndim` on reduced."""
    return reduce(array, axis=tuple(range(ndim, array.ndim))) if array.ndim > ndim else array


class Sum(Metric):
    """The sum of all values."""

    def __init__(self, name: str | None = "sum", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_weight(name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        self._add(self.total, by_example(values, sample_weight, np.sum)[0].sum())

    def result(self) -> Any:
        return self.total.read_value()


class Mean(Metric):
    """The mean of all values, 0 for none."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.total = self.add_weight(name="total")
        self.count = self.add_weight(name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        numbers, weights = by_example(values, sample_weight, np.mean)
        self._add(self.total, numbers.sum())
        self._add(self.count, weights.sum())

    def result(self) -> Any:
        return tensor(over(host(self.total), host(self.count)))


class MeanMetricWrapper(Mean):
    """The mean of fn(y_true, y_pred, **kwargs)."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None,
                 **kwargs: Any) -> None:
        super().__init__(name or getattr(fn, "__name__", "mean"), dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(  # type: ignore[override]
            self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), sample_weight)


class RootMeanSquaredError(Mean):
    """√ of the mean of (y_true - y_pred)²."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(  # type: ignore[override]
            self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        true, pred = one_rank(convert(y_true), convert(y_pred))
        super().update_state((host(pred).astype(float) - host(true)) ** 2, sample_weight)

    def result(self) -> Any:
        return tensor(np.sqrt(over(host(self.total), host(self.count))))

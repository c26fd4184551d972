"""How often predictions are right."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.dtypes import float32, float64, int64
from gtape.core.tensor import Tensor
from gtape.keras.metrics.means import MeanMetricWrapper
from gtape.keras.metrics.metric import host
from gtape.keras.metrics.traced import on_arrays
from gtape.ops.casting import cast
from gtape.ops.layout import expand_dims, squeeze
from gtape.ops.scalars import equal
from gtape.ops.sorting import argmax


def _aligned(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    a, b = host(y_true), host(y_pred)
    if a.ndim == b.ndim + 1 and a.shape[-1] == 1:
        return (a, b[:, None]) if b.ndim == 1 else (a[..., 0], b)
    if b.ndim == a.ndim + 1 and b.shape[-1] == 1:
        return (a[:, None], b) if a.ndim == 1 else (a, b[..., 0])
    return a, b


@on_arrays
def accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where the two are equal, else 0."""
    a, b = _aligned(y_true, y_pred)
    return (a == b).astype(np.float32)


@on_arrays
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> np.ndarray:
    """1 where y_pred > threshold agrees with the label, else 0."""
    a, b = _aligned(y_true, y_pred)
    return (a == (b > threshold)).astype(np.float32)


def _numbers(y_true: Any, scores: np.ndarray) -> np.ndarray:
    labels = host(y_true)
    if labels.ndim == scores.ndim and labels.shape[-1] == 1:
        labels = labels[..., 0]
    return labels.astype(np.int64)


@on_arrays
def categorical_accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where the largest score is that of the one-hot label, else 0."""
    return (host(y_true).argmax(-1) == host(y_pred).argmax(-1)).astype(np.float32)


@on_arrays
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where the largest score is that of the class number, else 0."""
    scores = host(y_pred)
    return (_numbers(y_true, scores) == scores.argmax(-1)).astype(np.float32)


def _in_top(labels: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
    own = np.take_along_axis(scores, labels[..., None], -1)
    return (((scores > own).sum(-1) < k) & np.isfinite(own[..., 0])).astype(np.float32)


@on_arrays
def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> np.ndarray:
    """1 where the one-hot label is among the k largest scores, else 0."""
    return _in_top(host(y_true).argmax(-1), host(y_pred), k)


@on_arrays
def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5,
                                      from_sorted_ids: bool = False) -> np.ndarray:
    """1 where the class number is among the k largest scores, else 0.

    With `from_sorted_ids`, y_pred holds class numbers, the likeliest first.
    """
    scores = host(y_pred)
    labels = _numbers(y_true, scores)
    if from_sorted_ids:
        return (scores[..., :k] == labels[..., None]).any(-1).astype(np.float32)
    return _in_top(labels, scores, k)


# ---------------------------------------------------------------- the same in ops, for traces
def _hits(found: Tensor) -> Tensor:
    return cast(found, float32)


def _shaped_alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """As `_aligned`."""
    if a.ndim == b.ndim + 1 and a.spec.shape[-1] == 1:
        return (a, expand_dims(b, 1)) if b.ndim == 1 else (squeeze(a, -1), b)
    if b.ndim == a.ndim + 1 and b.spec.shape[-1] == 1:
        return (expand_dims(a, 1), b) if a.ndim == 1 else (a, squeeze(b, -1))
    return a, b


def _class_numbers(labels: Tensor, scores: Tensor) -> Tensor:
    """As `_numbers`."""
    alike = labels.ndim == scores.ndim and labels.spec.shape[-1] == 1
    return cast(squeeze(labels, -1) if alike else labels, int64)


@accuracy.traced
def _(y_true: Tensor, y_pred: Tensor) -> Tensor:
    a, b = _shaped_alike(y_true, y_pred)
    same = a.dtype is b.dtype
    return _hits(equal(a, b) if same else equal(cast(a, float64), cast(b, float64)))


@binary_accuracy.traced
def _(y_true: Tensor, y_pred: Tensor, threshold: float = 0.5) -> Tensor:
    a, b = _shaped_alike(y_true, y_pred)
    return _hits(equal(a, cast(b > threshold, a.dtype)))


@categorical_accuracy.traced
def _(y_true: Tensor, y_pred: Tensor) -> Tensor:
    return _hits(equal(argmax(y_true, -1), argmax(y_pred, -1)))


@sparse_categorical_accuracy.traced
def _(y_true: Tensor, y_pred: Tensor) -> Tensor:
    return _hits(equal(_class_numbers(y_true, y_pred), argmax(y_pred, -1)))


class Accuracy(MeanMetricWrapper):
    """How often predictions equal labels."""

    def __init__(self, name: str | None = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)


class BinaryAccuracy(MeanMetricWrapper):
    """How often y_pred > threshold agrees with labels 0 and 1."""

    def __init__(self, name: str | None = "binary_accuracy", dtype: Any = None,
                 threshold: float = 0.5) -> None:
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must lie in (0, 1); got {threshold}")
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """How often the largest score is that of the one-hot label."""

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """How often the largest score is that of the class number."""

    def __init__(self, name: str | None = "sparse_categorical_accuracy",
                 dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the one-hot label is among the k largest scores."""

    def __init__(self, k: int = 5, name: str | None = "top_k_categorical_accuracy",
                 dtype: Any = None) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class number is among the k largest scores."""

    def __init__(self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy",
                 dtype: Any = None, from_sorted_ids: bool = False) -> None:
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k,
                         from_sorted_ids=from_sorted_ids)

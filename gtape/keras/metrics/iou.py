"""Intersection over union of the regions of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.keras.metrics.metric import Metric, host, tensor


class IoU(Metric):
    """The mean over `target_class_ids` of (both) / (true or predicted).

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes looked at.
        ignore_class: examples of this true class do not count.
        sparse_y_true, sparse_y_pred: class numbers rather than one-hot or scores.
        axis: where the classes of one-hot labels or scores are.
    """

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
                 dtype: Any = None, ignore_class: int | None = None, sparse_y_true: bool = True,
                 sparse_y_pred: bool = True, axis: int = -1) -> None:
        super().__init__(dtype, name)
        if target_class_ids and max(target_class_ids) >= num_classes:
            raise ValueError(f"target classes must lie below num_classes {num_classes}; got "
                             f"{list(target_class_ids)}")
        self.num_classes, self.target_class_ids = num_classes, list(target_class_ids)
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_weight((num_classes, num_classes), name="total_cm")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        true, pred = host(y_true), host(y_pred)
        true = true if self.sparse_y_true else true.argmax(self.axis)
        pred = pred if self.sparse_y_pred else pred.argmax(self.axis)
        true, pred = true.reshape(-1).astype(np.int64), pred.reshape(-1).astype(np.int64)
        weight = np.ones(true.size) if sample_weight is None else np.broadcast_to(
            host(sample_weight).reshape(-1), true.shape)
        if self.ignore_class is not None:
            kept = true != self.ignore_class
            true, pred, weight = true[kept], pred[kept], weight[kept]
        size = self.num_classes
        cells = np.bincount(true * size + pred, weight, size * size)
        self._add(self.total_cm, cells.reshape(size, size))

    def result(self) -> Any:
        cells = host(self.total_cm).astype(np.float64)
        both = np.diag(cells)[self.target_class_ids]
        either = (cells.sum(0) + cells.sum(1) - np.diag(cells))[self.target_class_ids]
        known = either > 0
        return tensor((both[known] / either[known]).mean() if known.any() else 0.0)


class MeanIoU(IoU):
    """`IoU` of all classes."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_true: bool = True,
                 sparse_y_pred: bool = True, axis: int = -1) -> None:
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class,
                         sparse_y_true, sparse_y_pred, axis)


class OneHotIoU(IoU):
    """`IoU` of one-hot labels and scores."""

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None,
                 dtype: Any = None, ignore_class: int | None = None, sparse_y_pred: bool = False,
                 axis: int = -1) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False,
                         sparse_y_pred, axis)


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` of one-hot labels and scores."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_pred: bool = False,
                 axis: int = -1) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)


class BinaryIoU(IoU):
    """`IoU` of two classes, where y_pred >= threshold is class 1."""

    def __init__(self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5,
                 name: str | None = None, dtype: Any = None) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(y_true, host(y_pred) >= self.threshold, sample_weight)

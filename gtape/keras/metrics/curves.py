"""Curves over thresholds: the area under them, and points on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.text import shown
from gtape.keras.config import epsilon
from gtape.keras.metrics.confusion import counts, flat_inputs
from gtape.keras.metrics.metric import Metric, host, over, tensor


def even_thresholds(number: int, beyond: float = 0.0) -> np.ndarray:
    """`number` thresholds from 0 to 1, the outermost moved out by `beyond`.

    Raises:
        ValueError: fewer than two.
    """
    if number < 2:
        raise ValueError(f"num_thresholds must be at least 2; got {number}")
    made = np.linspace(0, 1, number)
    made[0] -= beyond
    made[-1] += beyond
    return made


class Curve(Metric):
    """The four counts at many thresholds."""

    def __init__(self, thresholds: np.ndarray, name: str | None, dtype: Any) -> None:
        super().__init__(dtype, name)
        self.thresholds = thresholds
        self.counted = [self.add_weight((len(thresholds),), name=name) for name in (
            "true_positives", "false_positives", "true_negatives", "false_negatives")]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        made = counts(*flat_inputs(y_true, y_pred, sample_weight), self.thresholds)
        for variable, found in zip(self.counted, made):
            self._add(variable, found)

    def _kept(self) -> list[np.ndarray]:
        return [host(v).astype(np.float64) for v in self.counted]


class AUC(Curve):
    """The area under the ROC curve or the precision-recall curve.

    Davis & Goadrich 2006, "The relationship between precision-recall and ROC curves" (ICML), for
    the interpolation of the latter.

    Args:
        num_thresholds: how many points the curve has.
        curve: 'ROC' or 'PR'.
        summation_method: 'interpolation', 'minoring' or 'majoring'.
        thresholds: inner thresholds of one's own.
        from_logits: predictions go through a sigmoid first.
    """

    def __init__(self, num_thresholds: int = 200, curve: str = "ROC",
                 summation_method: str = "interpolation", name: str | None = None,
                 dtype: Any = None, thresholds: Any = None, multi_label: bool = False,
                 num_labels: int | None = None, label_weights: Any = None,
                 from_logits: bool = False) -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be 'ROC' or 'PR'; got {shown(curve)}")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(f"summation_method must be 'interpolation', 'minoring' or 'majoring'; "
                             f"got {shown(summation_method)}")
        if multi_label or label_weights is not None:
            raise ValueError("AUC: multi_label is not supported; make one AUC for each label")
        if thresholds is None:
            points = even_thresholds(num_thresholds, epsilon())
        else:
            points = np.array([-epsilon(), *sorted(thresholds), 1 + epsilon()])
        super().__init__(points, name, dtype)
        self.curve, self.summation_method = curve, summation_method
        self._from_logits = from_logits

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self._from_logits:
            from gtape.ops.scalars import sigmoid

            y_pred = sigmoid(convert(y_pred))
        super().update_state(y_true, y_pred, sample_weight)

    def result(self) -> Any:
        tp, fp, tn, fn = self._kept()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return tensor(_precision_recall_area(tp, fp, fn))
        recall = over(tp, tp + fn)
        if self.curve == "ROC":
            x, y = over(fp, fp + tn), recall
        else:
            x, y = recall, over(tp, tp + fp)
        pairs = {"interpolation": (y[:-1] + y[1:]) / 2, "minoring": np.minimum(y[:-1], y[1:]),
                 "majoring": np.maximum(y[:-1], y[1:])}
        return tensor(np.sum((x[:-1] - x[1:]) * pairs[self.summation_method]))


def _precision_recall_area(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> float:
    """Between two points, precision is (slope p + intercept) / p, with p all predicted positive."""
    predicted = tp + fp
    gained = tp[:-1] - tp[1:]
    slope = over(gained, np.maximum(predicted[:-1] - predicted[1:], 0))
    intercept = tp[1:] - slope * predicted[1:]
    both = (predicted[:-1] > 0) & (predicted[1:] > 0)
    ratio = np.where(both, over(predicted[:-1], predicted[1:]), 1.0)
    parts = slope * (gained + intercept * np.log(ratio))
    return float(np.sum(over(parts, np.maximum(tp[1:] + fn[1:], 0))))


class _Point(Curve):
    """The best of one quantity where another is at least `value`."""

    def __init__(self, value: float, num_thresholds: int = 200, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"{type(self).__name__} takes a number in [0, 1]; got {value}")
        points = np.array([0.5]) if num_thresholds == 1 else even_thresholds(num_thresholds)
        super().__init__(points, name, dtype)
        self.value, self.class_id = value, class_id

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.class_id is not None:
            y_true, y_pred = host(y_true)[..., self.class_id], host(y_pred)[..., self.class_id]
        super().update_state(y_true, y_pred, sample_weight)

    def _quantities(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        """(what must be at least `value`, what is to be large)."""
        raise NotImplementedError

    def result(self) -> Any:
        bound, wanted = self._quantities(*self._kept())
        allowed = wanted[bound >= self.value]
        return tensor(allowed.max() if allowed.size else 0.0)


class SensitivityAtSpecificity(_Point):
    """The best recall where the share of negatives found is at least `specificity`."""

    def _quantities(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return over(tn, tn + fp), over(tp, tp + fn)


class SpecificityAtSensitivity(_Point):
    """The best share of negatives found where the recall is at least `sensitivity`."""

    def _quantities(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return over(tp, tp + fn), over(tn, tn + fp)


class PrecisionAtRecall(_Point):
    """The best precision where the recall is at least `recall`."""

    def _quantities(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return over(tp, tp + fn), over(tp, tp + fp)


class RecallAtPrecision(_Point):
    """The best recall where the precision is at least `precision`."""

    def _quantities(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return over(tp, tp + fp), over(tp, tp + fn)

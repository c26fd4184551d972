"""The metrics given to `compile`."""

from __future__ import annotations

from typing import Any

from gtape.core.nest import flatten
from gtape.keras import metrics as all_metrics
from gtape.keras.metrics.means import MeanMetricWrapper
from gtape.keras.metrics.metric import Metric

_CHOSEN_LATER = {
    "accuracy": ("BinaryAccuracy", "SparseCategoricalAccuracy", "CategoricalAccuracy"),
    "crossentropy": ("BinaryCrossentropy", "SparseCategoricalCrossentropy",
                     "CategoricalCrossentropy")}
_SHORT = {"acc": "accuracy", "ce": "crossentropy"}


class CompiledMetrics:
    """Metrics by name, function or object; 'accuracy' means what fits the first batch."""

    def __init__(self, metrics: Any, weighted: Any, loss: Any) -> None:
        given = [*flatten(metrics or []), *flatten(weighted or [])]
        self._weighted_from = len(flatten(metrics or []))
        self._loss = loss
        self._given = given
        self.metrics: list[Metric] = [m for m in given if isinstance(m, Metric)]
        self._in_order: list[Metric] | None = None

    def update(self, y: Any, y_pred: Any, sample_weight: Any) -> None:
        """Add a batch to all metrics; those of weighted_metrics get the weights."""
        if self._in_order is None:
            self._in_order = [self._made(m, y, y_pred) for m in self._given]
            self.metrics = self._in_order
        for i, metric in enumerate(self._in_order):
            if i >= self._weighted_from and sample_weight is not None:
                metric.update_state(y, y_pred, sample_weight)
            else:
                metric.update_state(y, y_pred)

    def _made(self, given: Any, y: Any, y_pred: Any) -> Metric:
        if isinstance(given, Metric):
            return given
        name = _SHORT.get(given, given) if isinstance(given, str) else None
        if name in _CHOSEN_LATER:
            return self._fitting(_CHOSEN_LATER[name], given, y, y_pred)
        if isinstance(given, str):
            return all_metrics.get(given)
        return MeanMetricWrapper(given)

    def _fitting(self, names: tuple[str, str, str], name: str, y: Any, y_pred: Any) -> Metric:
        binary, sparse, categorical = names
        shape, predicted = tuple(y.shape), tuple(y_pred.shape)
        if (len(predicted) and predicted[-1] == 1) or len(predicted) == 1:
            chosen = binary
        elif len(shape) < len(predicted) or shape[-1] == 1:
            chosen = sparse
        elif "Binary" in type(self._loss).__name__ or getattr(
                self._loss, "__name__", "").startswith("binary"):
            chosen = binary
        else:
            chosen = categorical
        return getattr(all_metrics, chosen)(name=name)

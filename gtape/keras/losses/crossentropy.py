"""Cross entropies as classes."""

from __future__ import annotations

from typing import Any

from gtape.keras.losses import crossentropy_functions as f
from gtape.keras.losses.loss import LossFunctionWrapper
from gtape.ops.layout import reshape
from gtape.ops.scalars import not_equal

_MEAN = "sum_over_batch_size"


class BinaryCrossentropy(LossFunctionWrapper):
    """Mean of -y log p - (1 - y) log(1 - p), for labels 0 and 1."""

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
                 reduction: str | None = _MEAN, name: str | None = "binary_crossentropy",
                 dtype: Any = None) -> None:
        super().__init__(f.binary_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Binary cross entropy in which easy examples count less. arXiv:1708.02002."""

    def __init__(self, apply_class_balancing: bool = False, alpha: float = 0.25,
                 gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0,
                 axis: int = -1, reduction: str | None = _MEAN,
                 name: str | None = "binary_focal_crossentropy", dtype: Any = None) -> None:
        super().__init__(f.binary_focal_crossentropy, reduction, name, dtype,
                         apply_class_balancing=apply_class_balancing, alpha=alpha, gamma=gamma,
                         from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class CategoricalCrossentropy(LossFunctionWrapper):
    """-Σ y log p over the classes, for one-hot labels."""

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
                 reduction: str | None = _MEAN, name: str | None = "categorical_crossentropy",
                 dtype: Any = None) -> None:
        super().__init__(f.categorical_crossentropy, reduction, name, dtype,
                         from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Categorical cross entropy in which easy examples count less. arXiv:1708.02002."""

    def __init__(self, alpha: Any = 0.25, gamma: float = 2.0, from_logits: bool = False,
                 label_smoothing: float = 0.0, axis: int = -1, reduction: str | None = _MEAN,
                 name: str | None = "categorical_focal_crossentropy", dtype: Any = None) -> None:
        super().__init__(f.categorical_focal_crossentropy, reduction, name, dtype, alpha=alpha,
                         gamma=gamma, from_logits=from_logits, label_smoothing=label_smoothing,
                         axis=axis)


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """-log p of the class whose number the label is.

    Examples of `ignore_class` do not count, in the mean either.
    """

    def __init__(self, from_logits: bool = False, ignore_class: int | None = None,
                 reduction: str | None = _MEAN, axis: int = -1,
                 name: str | None = "sparse_categorical_crossentropy", dtype: Any = None) -> None:
        super().__init__(f.sparse_categorical_crossentropy, reduction, name, dtype,
                         from_logits=from_logits, ignore_class=ignore_class, axis=axis)
        self.ignore_class = ignore_class

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._fn_kwargs)

    def _counted(self, y_true: Any, values: Any) -> Any:
        if self.ignore_class is None:
            return None
        return not_equal(reshape(y_true, values.spec.shape), self.ignore_class)


class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """(1 - p^q) / q: robust to wrong labels. arXiv:1805.07836.

    Raises:
        ValueError: q outside (0, 1).
    """

    def __init__(self, q: float = 0.5, reduction: str | None = _MEAN,
                 name: str | None = "categorical_generalized_cross_entropy",
                 dtype: Any = None) -> None:
        if not 0 < q < 1:
            raise ValueError(f"q must lie in (0, 1); got {q}")
        super().__init__(f.categorical_generalized_cross_entropy, reduction, name, dtype, q=q)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._fn_kwargs)

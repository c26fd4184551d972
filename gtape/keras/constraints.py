"""Constraints: what an optimizer does to a weight after updating it."""

from __future__ import annotations

from typing import Any

from gtape.core.tensor import Tensor
from gtape.keras.config import epsilon
from gtape.keras.lookup import by_class_name, resolve
from gtape.ops.clipping import clip_by_value
from gtape.ops.reductions import reduce_sum
from gtape.ops.scalars import maximum, sqrt, square


def _norms(w: Any, axis: Any) -> Tensor:
    return sqrt(reduce_sum(square(w), axis=axis, keepdims=True))


class Constraint:
    """Base class: override `__call__(w)`, which gives the value to assign."""

    def __call__(self, w: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(w)")


class MaxNorm(Constraint):
    """Scale down vectors along `axis` that are longer than `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        return w * (clip_by_value(norms, 0.0, float(self.max_value)) / (epsilon() + norms))


class NonNeg(Constraint):
    """Negative weights become 0."""

    def __call__(self, w: Any) -> Any:
        return maximum(w, 0.0)


class UnitNorm(Constraint):
    """Vectors along `axis` get length 1."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return w / (epsilon() + _norms(w, self.axis))


class MinMaxNorm(Constraint):
    """Lengths along `axis` are brought towards [min_value, max_value], by the share `rate`."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0,
                 axis: Any = 0) -> None:
        self.min_value, self.max_value = min_value, max_value
        self.rate = rate
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        clipped = clip_by_value(norms, float(self.min_value), float(self.max_value))
        wanted = self.rate * clipped + (1 - self.rate) * norms
        return w * (wanted / (epsilon() + norms))


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm
_TABLE = by_class_name(MaxNorm, NonNeg, UnitNorm, MinMaxNorm, nonneg=NonNeg)


def get(identifier: Any) -> Any:
    """The constraint of a name such as 'non_neg'; None and functions stay."""
    return resolve("constraint", _TABLE, identifier, Constraint)

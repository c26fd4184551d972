"""Regularizers: functions of a weight whose value is added to the loss."""

from __future__ import annotations

import math
from typing import Any

from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.keras.lookup import by_class_name, resolve
from gtape.ops.reductions import reduce_sum
from gtape.ops.scalars import real_abs, square


def _strength(name: str, value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number that is not negative; got {shown(value)}")
    return number


class Regularizer:
    """Base class: override `__call__(x)`, which gives a scalar."""

    def __call__(self, x: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(x)")


class L1L2(Regularizer):
    """l1 Σ |x| + l2 Σ x²."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _strength("l1", 0.0 if l1 is None else l1)
        self.l2 = _strength("l2", 0.0 if l2 is None else l2)

    def __call__(self, x: Any) -> Any:
        total: Any = 0.0
        if self.l1:
            total = total + self.l1 * reduce_sum(real_abs(x))
        if self.l2:
            total = total + self.l2 * reduce_sum(square(x))
        return total


class L1(L1L2):
    """l1 Σ |x|."""

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)


class L2(L1L2):
    """l2 Σ x²."""

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)


class OrthogonalRegularizer(Regularizer):
    """factor times the mean |cosine| between different rows (or columns) of a matrix.

    Raises:
        ValueError: another mode than 'rows' or 'columns', or a weight that is no matrix.
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ValueError(f"mode must be 'rows' or 'columns'; got {shown(mode)}")
        self.factor = _strength("factor", factor)
        self.mode = mode

    def __call__(self, x: Any) -> Any:
        from gtape.ops.creation import eye
        from gtape.ops.products import matmul

        if x.ndim != 2:
            raise ValueError(f"OrthogonalRegularizer takes matrices; got shape {x.shape}")
        axis = 1 if self.mode == "rows" else 0
        norms = square(x)
        unit = x * (reduce_sum(norms, axis=axis, keepdims=True) + 1e-12) ** -0.5
        products = (matmul(unit, unit, transpose_b=True) if axis else
                    matmul(unit, unit, transpose_a=True))
        size = products.shape[0]
        others = products * (1.0 - eye(size, dtype=products.dtype))
        return self.factor * 0.5 * reduce_sum(real_abs(others)) / (size * (size - 1) / 2)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
_TABLE = by_class_name(L1, L2, L1L2, OrthogonalRegularizer, l1_l2=L1L2)


def get(identifier: Any) -> Any:
    """The regularizer of a name such as 'l2'; None and functions stay."""
    return resolve("regularizer", _TABLE, identifier, Regularizer)

"""Loss: one value per example, weighted and brought to one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.text import shown
from gtape.keras import config, naming
from gtape.ops.casting import cast
from gtape.ops.layout import expand_dims, squeeze
from gtape.ops.reductions import reduce_mean_, reduce_sum
from gtape.ops.scalars import multiply

_REDUCTIONS = (None, "none", "sum", "sum_over_batch_size", "mean", "mean_with_sample_weight")


class Reduction:
    """The names of the ways to bring losses to one number."""

    NONE = "none"
    SUM = "sum"
    MEAN = "mean"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    MEAN_WITH_SAMPLE_WEIGHT = "mean_with_sample_weight"


def checked_reduction(reduction: Any) -> Any:
    """`reduction`. Raises ValueError when there is no such way."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {_REDUCTIONS}; got {shown(reduction)}")
    return reduction


def floats(value: Any, dtype: Any) -> Tensor:
    """`value` as a tensor of `dtype`."""
    tensor = convert(value)
    return tensor if tensor.dtype is dtype else cast(tensor, dtype)


def pair(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of the floating dtype of `y_pred`."""
    pred = convert(y_pred)
    if not pred.dtype.is_floating:
        pred = cast(pred, as_dtype(config.floatx()))
    return floats(y_true, pred.dtype), pred


def one_rank(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """An axis of length 1 at the end of one is dropped, or added to the other, so ranks agree."""
    if a.ndim == b.ndim + 1 and a.spec.shape[-1] == 1:
        return (a, expand_dims(b, -1)) if b.ndim == 1 else (squeeze(a, -1), b)
    if b.ndim == a.ndim + 1 and b.spec.shape[-1] == 1:
        return (expand_dims(a, -1), b) if a.ndim == 1 else (a, squeeze(b, -1))
    return a, b


def reduce_weighted(values: Tensor, sample_weight: Any, reduction: Any) -> Tensor:
    """The values times their weights, reduced.

    'sum_over_batch_size' and 'mean' divide by the number of values, 'mean_with_sample_weight' by
    the sum of the weights.
    """
    weight = None
    if sample_weight is not None:
        weight = floats(sample_weight, values.dtype)
        values, weight = one_rank(values, weight)
        values = multiply(values, weight)
    if reduction in (None, "none") or not values.ndim or values.spec.shape == (0,):
        return values
    if reduction == "sum":
        return reduce_sum(values)
    if reduction == "mean_with_sample_weight" and weight is not None:
        from gtape.ops.scalars import divide_no_nan

        return divide_no_nan(reduce_sum(values), reduce_sum(weight))
    return reduce_mean_(values, axis=tuple(range(values.ndim)))


def _with_mask(sample_weight: Any, counted: Tensor, dtype: Any, reduction: Any) -> Tensor:
    """Weights that are 0 where `counted` is False, and make means go over the rest."""
    weight: Any = cast(counted, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        from gtape.ops.scalars import divide_no_nan

        weight = weight * divide_no_nan(float(math.prod(counted.spec.shape)),
                                        reduce_sum(weight))
    if sample_weight is None:
        return weight
    weight, given = one_rank(weight, floats(sample_weight, dtype))
    return multiply(weight, given)


class Loss:
    """Base class: override `call(y_true, y_pred)`, which gives one value per example.

    Args:
        name: for messages and logs.
        reduction: 'sum_over_batch_size' (or 'mean'), 'sum', 'mean_with_sample_weight', or 'none'
            (or None) for the values themselves.
        dtype: what inputs are cast to; `keras.config.floatx()` unless given.

    Raises:
        ValueError: an unknown reduction.
    """

    #: Whether `call` gets integer labels as they are; else they are cast like other inputs.
    _keeps_integers = False

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size",
                 dtype: Any = None) -> None:
        self.name = name or naming.snake_case(type(self).__name__)
        self.reduction = checked_reduction(reduction)
        self._dtype = as_dtype(dtype or config.floatx())

    @property
    def dtype(self) -> str:
        return self._dtype.name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One value per example."""
        raise NotImplementedError(f"{type(self).__name__} must define call(y_true, y_pred)")

    def _inputs(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        wanted = self._dtype
        if not (type(y_pred) is EagerTensor and y_pred._t.dtype is wanted):
            y_pred = _cast_nest(y_pred, wanted)
        if not (type(y_true) is EagerTensor and y_true._t.dtype is wanted):
            y_true = _cast_nest(y_true, wanted, self._keeps_integers)
        return y_true, y_pred

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss. Raises InvalidArgumentError when the shapes do not fit."""
        y_true, y_pred = self._inputs(y_true, y_pred)
        values = self.call(y_true, y_pred)
        counted = self._counted(y_true, values)
        if counted is not None:
            sample_weight = _with_mask(sample_weight, counted, values.dtype, self.reduction)
        return reduce_weighted(values, sample_weight, self.reduction)

    def _counted(self, y_true: Any, values: Any) -> Any:
        """A mask of the values that count, or None when all do."""
        return None


def _cast_nest(value: Any, dtype: Any, keep_integers: bool = False) -> Any:
    if isinstance(value, dict):
        return {k: _cast_nest(v, dtype, keep_integers) for k, v in value.items()}
    tensor = convert(value)
    if tensor.dtype is dtype or (keep_integers and tensor.dtype.is_integer):
        return tensor
    return cast(tensor, dtype)


class LossFunctionWrapper(Loss):
    """A Loss made of a function fn(y_true, y_pred, **kwargs)."""

    def __init__(self, fn: Callable[..., Any], reduction: str | None = "sum_over_batch_size",
                 name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn = fn
        self._fn_kwargs = kwargs
        # Class numbers would not survive a cast to float16; gtape's own functions take integers.
        self._keeps_integers = getattr(fn, "__module__", "").startswith("gtape.")

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(*one_rank(y_true, y_pred), **self._fn_kwargs)


class MeanLoss(LossFunctionWrapper):
    """A loss that is the mean over the last axis of `terms(y_true, y_pred)`, element by element.

    Where nothing is weighted and all is averaged, the two means are taken as one.
    """

    def __init__(self, fn: Callable[..., Any], terms: Callable[..., Any], *args: Any,
                 **kwargs: Any) -> None:
        super().__init__(fn, *args, **kwargs)
        self._terms = terms

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        if sample_weight is not None or self.reduction not in ("sum_over_batch_size", "mean"):
            return super().__call__(y_true, y_pred, sample_weight)
        y_true, y_pred = self._inputs(y_true, y_pred)
        if y_true.ndim != y_pred.ndim:
            y_true, y_pred = one_rank(y_true, y_pred)
        if y_true._t is not y_pred._t:
            y_true = floats(y_true, self._dtype)
        terms = self._terms(y_true, y_pred, **self._fn_kwargs)
        return reduce_mean_(terms, axis=tuple(range(terms.ndim)))

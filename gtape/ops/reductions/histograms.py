"""Histograms: how many values fall into each of some equal bins, are each integer, or are each pair
of a label and a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.recording import CUT, mark_all
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics.scatter import segment_count
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int, host_value, taken
from gtape.ops.elementwise.scalars import where
from gtape.ops.indexing.gathering import scatter_nd_, scatter_rows_, within
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import ones
from gtape.ops.shape.layout import reshape, reshape_
from gtape.ops.shape.packing import stack_


@primitive(nondifferentiable=True, tf_name="HistogramFixedWidth")
def bins_(xp: ArrayModule, x: Array, *, low: float, high: float, count: int) -> Array:
    """⌊count (x - low) / (high - low)⌋, at least 0 and at most count - 1."""
    # Integers are placed in float64, which tells all of int32 apart.
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    kind = wide.dtype.type
    place = xp.floor((wide - kind(low)) / kind(high - low) * kind(count))
    # Clipped before the cast: what does not fit an int32 is undefined there.
    return xp.clip(place, 0, count - 1).astype(np.int32)


@bins_.infer
def _(x: Spec, *, low: float, high: float, count: int) -> Spec:
    taken("histogram_fixed_width", "real numbers", x)
    if not low < high or count < 1:
        raise InvalidArgumentError(f"histogram_fixed_width: value_range must increase and nbins "
                                   f"must be at least 1; got [{low}, {high}] and {count}")
    return Spec(x.shape, dtypes.int32)


bins_.cases = [case((2, 3), low=0.0, high=1.0, count=4)]


def histogram_fixed_width_bins(values: TensorLike, value_range: TensorLike, nbins: int = 100,
                               dtype: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """The number of the bin, of `nbins` equal ones over `value_range`, that each value falls into.

    Values outside fall into the first or last bin. Not differentiable.

    Raises:
        InvalidArgumentError: a range that does not increase, or fewer than one bin.
    """
    bounds = host_value(value_range, "histogram_fixed_width: value_range")
    if bounds.shape != (2,):
        raise InvalidArgumentError(f"histogram_fixed_width: value_range must hold two numbers; got "
                                   f"{bounds.tolist()}")
    count = as_int(nbins, "histogram_fixed_width: nbins")
    y = bins_(convert(values), low=as_float(bounds[0], "histogram_fixed_width: value_range"),
                  high=as_float(bounds[1], "histogram_fixed_width: value_range"), count=count)
    return cast(y, dtype)


def histogram_fixed_width(values: TensorLike, value_range: TensorLike, nbins: int = 100,
                          dtype: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """How many values fall into each of `nbins` equal bins over `value_range`.

    Values outside count in the first or last bin. Not differentiable. Raises as
    `histogram_fixed_width_bins`.
    """
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    return cast(counts_(bins, count=as_int(nbins, "histogram_fixed_width: nbins")), dtype)


@primitive(nondifferentiable=True)
def counts_(xp: ArrayModule, ids: Array, *, count: int) -> Array:
    """How often each of 0 … count - 1 occurs; other integers are not counted."""
    return segment_count(xp, ids.reshape(-1), count)


counts_.infer(lambda ids, *, count: Spec((count,), dtypes.int64))
counts_.cases = [case(ints(6, below=4), count=3)]


@takes_composites
@at_home
def bincount(arr: TensorLike, weights: Any = None, minlength: int | None = None,
             maxlength: int | None = None, dtype: object = dtypes.int32, name: str | None = None,
             axis: int | None = None, binary_output: bool = False) -> Tensor:
    """How often each integer 0, 1, … occurs in `arr`, or the sum of the weights where it does.

    Args:
        weights: as many as `arr` has elements; the result has their dtype, and their gradient.
        minlength, maxlength: bounds for the length of the result, which else is max(arr) + 1;
            larger integers are not counted.
        dtype: of the counts.
        axis: -1 counts each row of a matrix by itself; None or 0 counts all.
        binary_output: 1 where an integer occurs, however often.

    Raises:
        InvalidArgumentError: negative integers, or weights of another shape.
        ValueError: weights together with binary_output, or another axis.
    """
    if weights is not None and binary_output:
        raise ValueError("bincount: ask for weights or binary_output, not both")
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount: axis must be None, 0 or -1; got {shown(axis)}")
    x = cast(convert(arr), dtypes.int64)
    with paused():  # positions have no gradient
        ids = within(x, 0, None, "bincount: the integers")
        length = _length(ids, minlength, maxlength)
        rows = x.spec.shape[0] if axis == -1 and x.ndim == 2 else 1
        # -1 is dropped by every count and scatter below.
        ids = where(ids < length, ids, -1)
        if rows > 1:
            # Each row counts in a stretch of its own: one pass for all rows.
            starts = convert(np.arange(rows)[:, None] * length, dtypes.int64, x._t.device)
            ids = where(ids < 0, -1, ids + starts)
        index = reshape(ids, (-1,))
    shape = (rows, length) if axis == -1 and x.ndim == 2 else (length,)
    if weights is not None:
        return _weighted(index, weights, x, rows * length, shape)
    y = reshape_(counts_(index, count=rows * length), shape=shape)
    return cast(y > 0 if binary_output else y, as_dtype(dtype))


def _length(ids: Tensor, minlength: int | None, maxlength: int | None) -> int:
    """The length of the counts: one more than the largest integer, within bounds."""
    least = 0 if minlength is None else as_int(minlength, "bincount: minlength")
    most = None if maxlength is None else as_int(maxlength, "bincount: maxlength")
    # Bounds that leave no choice need no look at the numbers, which a trace does not have.
    if minlength is not None and most is not None and least >= most:
        return most
    array = ids._array_()
    length = max(int(array.max()) + 1 if array.size else 0, least)
    return length if most is None else min(length, most)


def _weighted(index: Tensor, weights: TensorLike, x: Tensor, count: int, shape: tuple[int, ...],
              ) -> Tensor:
    values = convert(weights)
    if values.spec.shape != x.spec.shape:
        raise InvalidArgumentError(f"bincount: the weights must have the shape of arr, "
                                   f"{list(x.spec.shape)}; got {values.spec}")
    return reshape_(scatter_rows_(reshape(values, (-1,)), index, rows=count), shape=shape)


def _class_numbers(name: str, values: TensorLike, like: Any = None) -> Tensor:
    numbers = cast(values if like is None else convert(values, None, like), dtypes.int64)
    # Keras gives labels as columns, and TensorFlow squeezes them.
    if numbers.ndim == 2 and numbers.spec.shape[1] == 1:
        numbers = reshape_(numbers, shape=numbers.spec.shape[:1])
    if numbers.ndim != 1:
        raise InvalidArgumentError(f"confusion_matrix: {name} must be a vector; got {numbers.spec}")
    return numbers


def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: int | None = None,
                     weights: TensorLike | None = None, dtype: object = dtypes.int32,
                     name: str | None = None) -> Tensor:
    """[classes, classes] counts: entry (i, j) is how often label i was predicted as j.

    Args:
        labels, predictions: vectors of class numbers from 0.
        num_classes: how many classes there are; one more than the largest number unless given.
        weights: what each pair counts, 1 unless given.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: no vectors of one length, or class numbers out of range.
    """
    wanted = as_dtype(dtype)
    truth = _class_numbers("labels", convert(labels))
    guess = _class_numbers("predictions", predictions, truth._t.device)
    if truth.spec.shape != guess.spec.shape:
        raise InvalidArgumentError(f"confusion_matrix: labels and predictions must have one "
                                   f"length; got {truth.spec} and {guess.spec}")
    pairs = stack_(truth, guess, axis=1)
    if num_classes is None:
        count = int(np.asarray(pairs._peek()).max(initial=-1)) + 1  # no pairs: no classes
    else:
        count = as_int(num_classes, "confusion_matrix: num_classes")
    pairs = within(pairs, 0, count, "confusion_matrix: class numbers")
    if weights is None:
        each: Tensor = ones(truth.spec.shape, wanted)
    else:
        each = cast(convert(weights, None, truth._t.device), wanted)
        if each.spec.shape != truth.spec.shape:
            raise InvalidArgumentError(f"confusion_matrix: the weights must have the shape of the "
                                       f"labels, {truth.spec}; got {each.spec}")
    # The class numbers have no gradient; weights keep theirs, by the scatter.
    mark_all(CUT, "confusion_matrix", (truth, guess), ())
    return scatter_nd_(pairs, each, shape=(count, count))

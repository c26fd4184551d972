"""Sums, means, extremes and more of RaggedTensors, over ragged axes and dense ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, axes_of, host, index_tensor
from gtape.ops.elementwise import scalars
from gtape.ops.elementwise.operators import truediv
from gtape.ops.indexing import segments
from gtape.ops.ragged.conversions import expanded
from gtape.ops.ragged.elementwise import applied, mapped
from gtape.ops.ragged.partition import ends_of, spans
from gtape.ops.ragged.ragged_tensor import RaggedTensor, rank_of
from gtape.ops.reductions import reductions
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import ones_like
from gtape.ops.shape.identity import stop_gradient

#: By name: the function of dense axes, and that of segments.
_KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "reduce_sum": (reductions.reduce_sum, segments.unsorted_segment_sum),
    "reduce_prod": (reductions.reduce_prod, segments.unsorted_segment_prod),
    "reduce_max": (reductions.reduce_max, segments.unsorted_segment_max),
    "reduce_min": (reductions.reduce_min, segments.unsorted_segment_min),
}


def _axes(name: str, x: RaggedTensor, axis: IntsLike | None) -> list[int] | None:
    """The axes, from the last to the first; None for all."""
    rank = rank_of(x)
    given = axes_of(axis)
    if given is None:
        return None
    axes = given if isinstance(given, tuple) else (given,)
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"{name}: an axis must be in [{-rank}, {rank}); got {shown(axis)}")
    return sorted({a % rank for a in axes}, reverse=True)


def _reduced(name: str, x: Any, axis: IntsLike | None, keepdims: bool) -> Tensor | RaggedTensor:
    axes = _axes(name, x, axis)
    dense, segment = _KINDS[name]
    if axes is None or len(axes) == rank_of(x):
        reduced = dense(x.flat_values)
        if keepdims:
            reduced = reduced[(None,) * (rank_of(x))]
        return reduced
    reduced = x
    # From the last axis to the first: so the numbers of those that are left stay what they are.
    for a in axes:
        reduced = _over(reduced, a, dense, segment)
    if keepdims:
        for a in axes[::-1]:
            reduced = expanded(reduced, a)
    return reduced


def _over(x: TensorLike | CompositeTensor, axis: int, dense: Callable[..., object],
          segment: Callable[..., object]) -> Any:
    """The reduction over one axis."""
    if not isinstance(x, RaggedTensor):
        return dense(x, axis)
    if axis > 1:
        return x._with(_over(x.values, axis - 1, dense, segment))
    if axis == 1:
        return _segments(x.values, x._ids(), x._count(), segment)
    # All rows are one segment: what stands at one place of the rows is reduced together.
    whole = convert(np.zeros(x._count(), np.int64), None, x.flat_values._t.device)
    return _segments(x, whole, 1, segment).values


def _segments(values: TensorLike | CompositeTensor, ids: Tensor, count: int,
              segment: Callable[..., object]) -> Any:
    """The values with one id reduced to one; of ragged values, those at one place of their rows."""
    if not isinstance(values, RaggedTensor):
        return segment(values, ids, count)
    # Values at one place of the rows of one id get one number: then they are plain segments.
    owner = host(ids)
    lengths = np.diff(values._host())
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, owner, lengths)
    ends = ends_of(longest)
    places = convert(spans(ends[owner], lengths), None, ids._t.device)
    inner = _segments(values.values, places, int(ends[-1]), segment)
    return RaggedTensor._of_splits(inner, ends)


def grouped(name: str, data: TensorLike | CompositeTensor, segment_ids: Any, count: int,
            ) -> Tensor | RaggedTensor:
    """The unsorted segment function `name` of rows; of values, where the ids are ragged as they
    are. Raises InvalidArgumentError: there is not one id in [0, count) for each row."""
    if isinstance(segment_ids, RaggedTensor):
        if not isinstance(data, RaggedTensor) or not np.array_equal(
                data._host(), segment_ids._host()):
            raise InvalidArgumentError(f"{name}: ragged segment_ids must have the rows of data; "
                                       f"got {shown(segment_ids)} beside {shown(data)}")
        return grouped(name, data.values, segment_ids.values, count)
    function = getattr(segments, name)
    if not isinstance(data, RaggedTensor):
        return function(data, segment_ids, count)
    ids = index_tensor(segment_ids, name, data.flat_values)
    numbers = host(ids)
    if numbers.shape != (data._count(),) or count < 0 or (
            numbers.size and not 0 <= numbers.min() <= numbers.max() < count):
        raise InvalidArgumentError(f"{name}: segment_ids must be in [0, {count}), one for each of "
                                   f"{data._count()} rows; got {shown(segment_ids)}")
    with room_for(name, Spec((count + 1,), int64)):
        return _segments(data, ids, count, function)


def _reduction(name: str) -> Callable[..., Any]:
    def reduce(input_tensor: object, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Any:
        return _reduced(public, input_tensor, axis, keepdims)

    public = name
    return reduce


reduce_sum, reduce_prod, reduce_max, reduce_min = map(_reduction, _KINDS)


def reduce_mean(input_tensor: RaggedTensor, axis: IntsLike | None = None, keepdims: bool = False,
                name: str | None = None) -> Any:
    """Integers are divided as by truediv; nan for no values."""
    x = input_tensor
    total = reduce_sum(x, axis, keepdims)
    count = reduce_sum(mapped(ones_like, x), axis, keepdims)
    # `truediv` gives integers a floating quotient, as TensorFlow's mean of ragged integers does.
    if isinstance(total, RaggedTensor):
        return applied("reduce_mean", truediv, (total, count))
    return truediv(total, count)


def reduce_variance(input_tensor: RaggedTensor, axis: IntsLike | None = None,
                    keepdims: bool = False, name: str | None = None) -> Tensor:
    """The mean of the squares of x - c less the square of the mean of x - c, c the mean of all:
    nearer to 0 than x is, so that less is lost."""
    x = input_tensor
    if x.dtype.is_integer:
        x = mapped(cast, x, "float64")
    # The variance is the same about any centre, so that the gradient through this one is 0 exactly.
    centre = stop_gradient(reductions.reduce_mean(x.flat_values))
    x = mapped(lambda flat: flat - centre, x)
    squares = reduce_mean(mapped(scalars.square, x), axis, keepdims)
    mean = reduce_mean(x, axis, keepdims)
    return squares - scalars.square(mean)


def reduce_std(input_tensor: Any, axis: IntsLike | None = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    return scalars.sqrt(reduce_variance(input_tensor, axis, keepdims))


def _truth(reduce: Callable[..., object]) -> Callable[..., Any]:
    def of_bools(input_tensor: Any, axis: object = None, keepdims: bool = False,
                 name: str | None = None) -> Any:
        # There is no segment function of bools.
        number = reduce(mapped(cast, input_tensor, "int32"), axis, keepdims)
        return cast(scalars.minimum(scalars.maximum(number, 0), 1), "bool")

    return of_bools


# The extremes of no values are the ends of int32, which become those of bool.
reduce_any, reduce_all = _truth(reduce_max), _truth(reduce_min)


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> RaggedTensor:
    """Over a ragged axis, the last unless given."""
    at = -1 if axis is None else as_int(axis, "softmax: axis")
    # Taken off so that no exp overflows; a constant to the gradient, as it cancels.
    most = reduce_max(logits, at, True)
    most = mapped(stop_gradient, most) if isinstance(most, RaggedTensor) else stop_gradient(most)
    rows = at % rank_of(logits)
    raised = scalars.exp(logits - _repeated(most, logits, rows))
    return raised / _repeated(reduce_sum(raised, rows, True), logits, rows)


def _repeated(kept: object, x: RaggedTensor, axis: int) -> Any:
    """What a reduction kept, an axis of length 1, beside x."""
    if not isinstance(kept, RaggedTensor):
        return kept
    if axis == 1 or not isinstance(x.values, RaggedTensor):
        return RaggedTensor._of_splits(kept.values, kept._host(), 1 if axis == 1 else kept._uniform)
    return kept._with(_repeated(kept.values, x.values, axis - 1))

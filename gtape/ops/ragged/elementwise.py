"""Elementwise functions of RaggedTensors and dense tensors, which are broadcast to each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert, convert_like
from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops.indexing.gathering import rows_or_zero_
from gtape.ops.ragged.partition import ends_of, spans, within
from gtape.ops.ragged.ragged_tensor import RaggedTensor, rank_of
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import concat_


def taken(values: Any, index: np.ndarray) -> Any:
    """The rows of a tensor or RaggedTensor with these numbers, which may repeat."""
    if isinstance(values, RaggedTensor):
        ends = values._host()
        starts, lengths = ends[index], ends[index + 1] - ends[index]
        inner = taken(values.values, spans(starts, lengths))
        return RaggedTensor._of_splits(inner, ends_of(lengths), values._uniform)
    # A gather whose numbers are known to be in range, so that nothing is checked again.
    return rows_or_zero_(values, convert(index.astype(np.int64), None, values._t.device))


def loose(x: TensorLike | CompositeTensor) -> Any:
    """The same rows, of which none is said any more to have the length of all."""
    if not isinstance(x, RaggedTensor):
        return x
    rows = x._with(loose(x.values))
    rows._uniform = None
    return rows


def same_rows(x: RaggedTensor, y: RaggedTensor) -> bool:
    """Whether two have the same row splits for every ragged axis. Raises ValueError: their row
    splits have different dtypes; NotTraceableError: it is not known while tracing."""
    mine, theirs = x.nested_row_splits, y.nested_row_splits
    if mine[0].dtype is not theirs[0].dtype:
        raise ValueError("the RaggedTensors have row splits of different dtypes; write "
                         "x.with_row_splits_dtype(tf.int64)")
    if len(mine) != len(theirs):
        return False
    # What was computed from one RaggedTensor shares its splits: no number has to be compared, on a
    # GPU none fetched, and in a trace none known.
    if all(a is b for a, b in zip(mine, theirs)):
        return True
    if any(a.spec.shape != b.spec.shape for a, b in zip(mine, theirs)):
        return False
    return all(np.array_equal(a._host(), b._host()) for a, b in zip(x._levels(), y._levels()))


def applied(name: str, function: Callable[..., Any], args: Sequence[Any]) -> RaggedTensor:
    """`function` of the values, the operands broadcast: a length of 1 of a dense axis is repeated;
    ragged axes must agree."""
    first = next(a for a in args if isinstance(a, RaggedTensor))
    like = first.flat_values._t
    given = [a if isinstance(a, (RaggedTensor, Tensor)) else
             a._read_() if isinstance(a, Variable) else
             _beside(a, like, name) for a in args]
    rank = first.flat_values.ndim
    # First what most calls are: operands of the same rows, or scalars, need one call on the flat
    # values.
    if all(same_rows(first, a) if isinstance(a, RaggedTensor) else a.ndim < rank or not a.ndim
           for a in given):
        flat = [a.flat_values if isinstance(a, RaggedTensor) else a for a in given]
        return first.with_flat_values(function(*flat))
    column = _columns(first, given)
    if column is not None:
        return first.with_flat_values(function(*column))
    return _broadcast(name, function, given)


def _beside(value: TensorLike, like: ArrayType, name: str) -> Tensor:
    try:
        return convert_like(value, like, name)
    # A value of another dtype: the function itself says what is wrong, or takes it, as `where`
    # takes bools.
    except (TypeError, ValueError):
        return convert(value, None, like.device)


def _columns(first: RaggedTensor, given: Sequence[Tensor | RaggedTensor]) -> list[Tensor] | None:
    """The operands beside the flat values of the first where the others have the same rows, or one
    value for each row, as a mask [rows, 1]: known while tracing too. None for others."""
    columns: list[Tensor] = []
    if first.ragged_rank != 1 or first.flat_values.ndim != 1:
        return None
    for a in given:
        if isinstance(a, RaggedTensor):
            if a.row_splits is not first.row_splits or a.ragged_rank != 1:
                return None
            columns.append(a.flat_values)
        elif not a.ndim:
            columns.append(a)
        elif a.spec.shape == (first._count(), 1):
            columns.append(rows_or_zero_(reshape_(a, shape=(first._count(),)), first._ids()))
        else:
            return None
    return columns


class _Operand:
    """One operand of a broadcast: where it is as its axes are gone through."""

    def __init__(self, value: Any, rank: int) -> None:
        self.flat = value.flat_values if isinstance(value, RaggedTensor) else value
        self.levels = value._levels() if isinstance(value, RaggedTensor) else []
        dense = self.flat.spec.shape
        #: The length of each of its own axes; None for a ragged one.
        self.own = dense if not self.levels else (
            self.levels[0]._count(), *[None] * len(self.levels), *dense[1:])
        self.lead = rank - len(self.own)
        self.rows = np.zeros(1, np.int64)

    def at(self, axis: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Of each row so far: where it starts, how long it is; whether it can be repeated."""
        ones = np.ones(len(self.rows), np.int64)
        at = axis - self.lead
        if at < 0:
            return self.rows, ones, True
        length = self.own[at]
        if length is None:
            level = self.levels[at - 1]
            ends = level._host()
            return ends[self.rows], ends[self.rows + 1] - ends[self.rows], level._uniform == 1
        return self.rows * length, ones * length, length == 1

    def picked(self, axes: int) -> Tensor:
        """The values for the rows of the result, `axes` of whose axes are behind us."""
        gone = axes - self.lead
        if gone <= 0:
            return self.flat
        used = gone - len(self.levels)  # of the axes of the flat values
        shape = self.flat.spec.shape
        table = reshape_(self.flat, shape=(math.prod(shape[:used]), *shape[used:]))
        count = table.spec.shape[0]
        # The operand that has all rows of the result needs no gather, nor has its gradient.
        if len(self.rows) == count and (self.rows == np.arange(count)).all():
            return table
        return rows_or_zero_(table, convert(self.rows, None, table._t.device))


def _broadcast(name: str, function: Callable[..., object], given: Sequence[Any]) -> Any:
    """`function` of operands of different rows, brought to the rows that they have in common."""
    rank = max(map(rank_of, given))
    operands = [_Operand(a, rank) for a in given]
    axes = 1 + max(o.lead + len(o.levels) for o in operands if o.levels)
    splits: list[tuple[np.ndarray, int | None]] = []
    for axis in range(axes):
        spans_of = [o.at(axis) for o in operands]
        fixed = [lengths for _, lengths, repeats in spans_of if not repeats]
        lengths = fixed[0] if fixed else spans_of[0][1]
        for other in fixed[1:]:
            if not np.array_equal(other, lengths):
                row = int((other != lengths).argmax())
                raise InvalidArgumentError(
                    f"{name}: the rows along axis {axis} must have equal lengths; row {row} has "
                    f"{int(lengths[row])} and {int(other[row])} values. Only dense axes of length "
                    f"1 are repeated")
        index = within(lengths)
        for o, (starts, _, repeats) in zip(operands, spans_of):
            o.rows = np.repeat(starts, lengths) + (0 if repeats else index)
        if axis:
            known = all(o.lead > axis or o.own[axis - o.lead] is not None for o in operands)
            # A length of no rows says nothing about rows to come.
            same = len(lengths) > 0 and bool((lengths == lengths[0]).all())
            splits.append((ends_of(lengths), int(lengths[0]) if known and same else None))
    result = function(*[o.picked(axes) for o in operands])
    for ends, uniform in splits[::-1]:
        result = RaggedTensor._of_splits(result, ends, uniform)
    return result


def mapped(function: Callable[..., Any], x: RaggedTensor, *args: Any, **kwargs: Any) -> Any:
    """`function` of the flat values of the first argument."""
    return x.with_flat_values(function(x.flat_values, *args, **kwargs))


def joined(parts: Sequence[Tensor | RaggedTensor]) -> Tensor | RaggedTensor:
    """Tensors, or RaggedTensors of one ragged rank, one after another along the first axis."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], RaggedTensor):
        return concat_(*parts, axis=0)
    lengths = np.concatenate([np.diff(p._host()) for p in parts])
    uniform = parts[0]._uniform if len({p._uniform for p in parts}) == 1 else None
    return RaggedTensor._of_splits(joined([p.values for p in parts]), ends_of(lengths), uniform)

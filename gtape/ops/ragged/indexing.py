"""x[…] of RaggedTensors: rows, slices of rows and of what is in them, new axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops.arguments import as_int
from gtape.ops.ragged.elementwise import taken
from gtape.ops.ragged.partition import ends_of, spans
from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.ops.shape.layout import expand_dims


def item(x: RaggedTensor, key: Any) -> Any:
    """x[key]: integers for the first axis and dense ones, slices, None and … for any.

    Raises:
        ValueError: an integer for a ragged axis, more indices than axes.
        IndexError: no such row.
        TypeError: something else as an index.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    rank = x.ragged_rank + x.flat_values.ndim
    given = sum(k is not None and k is not ... for k in keys)
    if given > rank or sum(k is ... for k in keys) > 1:
        raise ValueError(f"x[…]: too many indices for a RaggedTensor of rank {rank}: {shown(key)}")
    if any(k is ... for k in keys):
        at = next(i for i, k in enumerate(keys) if k is ...)
        keys[at:at + 1] = [slice(None)] * (rank - given)
    return _outer(x, [_plain(k) for k in keys])


def _plain(key: Any) -> Any:
    if key is None:
        return None
    if isinstance(key, slice):
        return slice(*(None if v is None else as_int(v, "x[…]: a bound of a slice")
                       for v in (key.start, key.stop, key.step)))
    if isinstance(key, (Tensor, Variable)) or hasattr(key, "__index__"):
        return as_int(key, "x[…]: an index of a RaggedTensor")
    raise TypeError(f"x[…]: an index of a RaggedTensor must be an int, a slice, … or None; got "
                    f"{shown(key)}. For a list of rows write tf.gather")


def _outer(x: Any, keys: list[Any]) -> Any:
    """x[keys], whose first key is for the rows of x."""
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    key, *rest = keys
    if key is None:
        inner = _outer(x, rest)
        return _stacked(inner)
    ends, rows = x._host(), x._count()
    if isinstance(key, int):
        at = key + rows if key < 0 else key
        if not 0 <= at < rows:
            raise IndexError(f"x[…]: the index {key} is outside the {rows} rows")
        row = _span(x.values, int(ends[at]), int(ends[at + 1]))
        return _outer(row, rest)
    if key.step == 0:
        raise ValueError("x[…]: the step of a slice must not be 0")
    start, stop, step = key.indices(rows)
    if (start, stop, step) == (0, rows, 1):
        return _inner(x, rest)
    return _inner(taken(x, np.arange(start, stop, step)), rest)


def _span(values: Any, start: int, stop: int) -> Any:
    if isinstance(values, RaggedTensor):
        return taken(values, np.arange(start, stop))
    return values[start:stop]


def _stacked(x: Any) -> Any:
    """x with an axis of length 1 before it."""
    if not isinstance(x, RaggedTensor):
        return expand_dims(x, 0)
    return RaggedTensor._made(x, np.array([0, x._count()]), x._count())


def _inner(x: RaggedTensor, keys: list[Any]) -> Any:
    """x[:, keys], whose first key is for what is in each row."""
    if not keys:
        return x
    key, *rest = keys
    if key is None:
        inner = _inner(x, rest)
        if not isinstance(inner, RaggedTensor):
            from gtape.ops.shape.layout import expand_dims

            return expand_dims(inner, 1)
        return RaggedTensor._made(inner, np.arange(inner._count() + 1), 1)
    if isinstance(key, int):
        return _column(x, key, rest)
    ends = x._host()
    if key == slice(None):
        kept = x
    else:
        kept = _sliced(x, ends, key)
    if not rest:
        return kept
    if isinstance(x.values, RaggedTensor):
        return kept._with(_inner(kept.values, rest))
    return kept._with(kept.values[(slice(None), *rest)])


def _column(x: RaggedTensor, key: int, rest: list[Any]) -> Any:
    """One value of each row, where all rows have one length."""
    if x._uniform is None:
        raise ValueError("x[…]: a ragged axis cannot be indexed with an integer, since some rows "
                         "may be too short; write a slice such as x[:, :1], or x.to_tensor()")
    at = key + x._uniform if key < 0 else key
    if not 0 <= at < x._uniform:
        raise IndexError(f"x[…]: the index {key} is outside the {x._uniform} values of each row")
    found = taken(x.values, x._host()[:-1] + at)
    if isinstance(found, RaggedTensor):
        return _inner(found, rest)
    return found[(slice(None), *rest)] if rest else found


def _sliced(x: RaggedTensor, ends: np.ndarray, key: slice) -> RaggedTensor:
    """The slice of every row."""
    lengths = np.diff(ends)
    step = 1 if key.step is None else key.step
    if step == 0:
        raise ValueError("x[…]: the step of a slice must not be 0")
    lowest, highest = (0, lengths) if step > 0 else (-1, lengths - 1)

    def bound(given: int | None, default: Any) -> Any:
        if given is None:
            return np.broadcast_to(default, lengths.shape)
        at = given + lengths if given < 0 else np.full_like(lengths, given)
        return np.clip(at, lowest, highest)

    first, last = (lowest, highest) if step > 0 else (highest, lowest)
    start, stop = bound(key.start, first), bound(key.stop, last)
    count = np.maximum(-((start - stop) // step) if step > 0 else -((stop - start) // -step), 0)
    within = spans(np.zeros(len(count), np.int64), count)
    index = np.repeat(ends[:-1] + start, count) + within * step
    uniform = None
    if x._uniform is not None and len(count):
        uniform = int(count[0])
    return RaggedTensor._made(taken(x.values, index), ends_of(count), uniform)

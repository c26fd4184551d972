"""Sets: of each row of a last axis, what is in both, in one, in either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.sparse.conversions import int64_rows
from gtape.ops.sparse.places import host_rows, placed, sparse
from gtape.ops.sparse.tensor import SparseTensor

_Groups = dict[tuple[int, ...], set[Any]]


def _groups(name: str, value: Any) -> tuple[_Groups, tuple[int, ...], Tensor]:
    """The set of each row of the last axis, the lengths of the others, and the values."""
    found: _Groups = {}
    if isinstance(value, SparseTensor):
        x, lead = value.values, value._lengths[:-1]
        rows, items = host_rows(value), value.values._peek()  # type: ignore[attr-defined]
        for row, item in zip(rows[:, :-1].tolist(), items.tolist()):
            found.setdefault(tuple(row), set()).add(item)
        rank = len(value._lengths)
    else:
        x = convert(value)
        lead, rank = x.spec.shape[:-1], x.ndim
        array = np.asarray(x._peek())  # type: ignore[attr-defined]
        for at in np.ndindex(*lead):
            found[at] = set(array[at].tolist()) if rank else set()
    if rank < 2 or not (x.dtype is string or x.dtype.is_integer):
        raise InvalidArgumentError(f"{name} takes integers or strings of rank 2 or more; got "
                                   f"{x.dtype.name} of rank {rank}")
    return found, lead, x


def _of_sets(name: str, a: Any, b: Any, choose: Callable[[set[Any], set[Any]], set[Any]],
             ) -> SparseTensor:
    first, lead, x = _groups(name, a)
    second, other, y = _groups(name, b)
    if lead != other or x.dtype is not y.dtype:
        raise InvalidArgumentError(f"{name}: all but the last lengths, and the dtypes, must be "
                                   f"equal; got {x.dtype.name}{[*lead, None]} and "
                                   f"{y.dtype.name}{[*other, None]}")
    at: list[tuple[int, ...]] = []
    items: list[Any] = []
    longest = 0
    for place in sorted(first.keys() | second.keys()):
        chosen = sorted(choose(first.get(place, set()), second.get(place, set())))
        at += [(*place, i) for i in range(len(chosen))]
        items += chosen
        longest = max(longest, len(chosen))
    values = placed(np.array(items, object if x.dtype is string else x.dtype.np_dtype), x)
    rows = np.array(at, np.int64).reshape(-1, len(lead) + 1)
    return SparseTensor._made(int64_rows(rows, values), values, (*lead, longest))


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` and in `b`, sorted.

    Args:
        a, b: integers or strings, dense or sparse, of one shape but for the last axis.

    Raises:
        InvalidArgumentError: their shapes or dtypes do not fit.
    """
    return _of_sets("sets.intersection", a, b, set.intersection)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` or in `b`. See `intersection`."""
    return _of_sets("sets.union", a, b, set.union)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True,
               ) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` and not in `b`, or the reverse where
    `aminusb` is false. See `intersection`."""
    first, second = (a, b) if aminusb else (b, a)
    return _of_sets("sets.difference", first, second, set.difference)


def size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different values each row of the last axis of a SparseTensor has: int32."""
    x = sparse(a, "size")
    found, lead, values = _groups("sets.size", x)
    made = np.zeros(lead, np.int32)
    for place, members in found.items():
        made[place] = len(members)
    return placed(made, values)

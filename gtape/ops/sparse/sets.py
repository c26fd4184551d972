"""Sets: of each row of a last axis, what is in both, in one, in either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import host
from gtape.ops.sparse.places import sparse
from gtape.ops.sparse.tensor import SparseTensor, placed

_Groups = dict[tuple[int, ...], set[Any]]


def _groups(name: str, value: object) -> tuple[_Groups, tuple[int, ...], Tensor]:
    """The set of each row of the last axis, the lengths of the others, and the values."""
    groups: _Groups = {}
    if isinstance(value, SparseTensor):
        x, lead = value.values, value._lengths[:-1]
        rows, items = host(value.indices), host(value.values)
        for row, item in zip(rows[:, :-1].tolist(), items.tolist()):
            groups.setdefault(tuple(row), set()).add(item)
        rank = len(value._lengths)
    else:
        x = convert(value)
        lead, rank = x.spec.shape[:-1], x.ndim
        array = host(x)
        for at in np.ndindex(*lead):
            groups[at] = set(array[at].tolist()) if rank else set()
    if rank < 2 or not (x.dtype is string or x.dtype.is_integer):
        raise InvalidArgumentError(f"{name} takes integers or strings of rank 2 or more; got "
                                   f"{x.dtype.name} of rank {rank}")
    return groups, lead, x


def _of_sets(name: str, a: object, b: object, choose: Callable[[set[Any], set[Any]], set[Any]],
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
    return SparseTensor._of_rows(rows, values, (*lead, longest))


def intersection(a: Tensor, b: Tensor, validate_indices: bool = True) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` and in `b`, sorted.

    Args:
        a, b: integers or strings, dense or sparse, of one shape but for the last axis.

    Raises:
        InvalidArgumentError: their shapes or dtypes do not fit.
    """
    return _of_sets("sets.intersection", a, b, set.intersection)


def union(a: Tensor, b: Tensor, validate_indices: bool = True) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` or in `b`. See `intersection`."""
    return _of_sets("sets.union", a, b, set.union)


def difference(a: TensorLike, b: TensorLike, aminusb: bool = True, validate_indices: bool = True,
               ) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` and not in `b`, or the reverse where
    `aminusb` is false. See `intersection`."""
    first, second = (a, b) if aminusb else (b, a)
    return _of_sets("sets.difference", first, second, set.difference)


def size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """How many different values each row of the last axis of a SparseTensor has: int32."""
    x = sparse(a, "size")
    groups, lead, values = _groups("sets.size", x)
    sizes = np.zeros(lead, np.int32)
    for place, members in groups.items():
        sizes[place] = len(members)
    return placed(sizes, values)

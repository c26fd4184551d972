"""Rows of several matrices combined: crosses, which are every combination of one value of each, and
sets: what is in both, in one, in either."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_bytes, as_int, as_items, host
from gtape.ops.sparse.tensor import SparseTensor, placed, sparse, values_in_rows
from gtape.ops.text.hashes import fingerprints
from gtape.trace.host_steps import step

#: TensorFlow's, so that hashes are TensorFlow's.
HASH_KEY = 0xDECAFCAFFE
_MULTIPLIER = 0xC6A4A7935BD1E995
_WORD = (1 << 64) - 1


def rows_of(name: str, value: Any) -> list[list[Any]]:
    """The values of each row of a matrix: dense, sparse or ragged."""
    if isinstance(value, SparseTensor) and len(value._lengths) != 2:
        raise InvalidArgumentError(f"{name}: the inputs must be matrices; got {list(value.shape)}")
    parts = values_in_rows(value)
    if parts is None:
        return [list(row) for row in host(_matrix(name, value))]
    x, owner, count = parts
    _check_values(name, x)
    rows: list[list[Any]] = [[] for _ in range(count)]
    for row, item in zip(owner, host(x)):
        rows[row].append(item)
    return rows


def _matrix(name: str, value: Tensor) -> Tensor:
    x = convert(value)
    if x.ndim != 2:
        raise InvalidArgumentError(f"{name}: the inputs must be matrices; got {x.spec}")
    _check_values(name, x)
    return x


def _check_values(name: str, x: Tensor) -> None:
    if not (x.dtype is string or x.dtype.is_integer):
        raise InvalidArgumentError(f"{name}: the inputs must hold integers or strings; got "
                                   f"{x.dtype.name}")


def combined(name: str, inputs: TensorLike) -> list[list[tuple[Any, ...]]]:
    """Of each row, every combination of one value of each input, the last changing fastest."""
    parts = [rows_of(name, value) for value in as_items(inputs, f"{name}: inputs")]
    if not parts or any(len(p) != len(parts[0]) for p in parts):
        raise InvalidArgumentError(f"{name}: the inputs must be matrices of one number of rows; "
                                   f"got {[len(p) for p in parts]}")
    return [list(itertools.product(*rows)) for rows in zip(*parts)]


def _packed(rows: list[list[object]], dtype: Any) -> SparseTensor:
    at = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.empty(len(at), dtype)
    values[:] = [v for row in rows for v in row]
    longest = max((len(row) for row in rows), default=0)
    return SparseTensor._of_rows(np.array(at, np.int64).reshape(-1, 2), convert(
        values, string if dtype is object else None), (len(rows), longest))


def text_of(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(int(value)).encode()


def cross(inputs: TensorLike, name: str | None = None, separator: str | None = None,
          ) -> SparseTensor:
    """Of each row, every combination of one value of each input, as strings "a_X_b".

    Args:
        inputs: matrices of one number of rows, of integers or strings; dense or sparse.
        separator: a string between the values; "_X_" unless given.

    Raises:
        InvalidArgumentError: the inputs do not fit.
        TypeError: the separator is no string.
    """
    between = as_bytes("_X_" if separator is None else separator, "cross: separator")
    return _packed([[between.join(map(text_of, values)) for values in row]
                    for row in combined("cross", inputs)], object)


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One fingerprint of two, of uint64 arrays."""
    # FingerprintCat64 of TensorFlow: Murmur's mix of the second into the first.
    by, half = np.uint64(_MULTIPLIER), np.uint64(47)
    part = b * by
    mixed = (a ^ by ^ ((part ^ (part >> half)) * by)) * by
    mixed = (mixed ^ (mixed >> half)) * by
    return mixed ^ (mixed >> half)


def _fingerprints(array: np.ndarray) -> np.ndarray:
    """Those of strings, and integers as they are: uint64 of the array's shape."""
    if array.dtype != object:
        # Integers are their own fingerprints, as in TensorFlow.
        return array.astype(np.int64).view(np.uint64)
    return fingerprints(list(array.reshape(-1))).reshape(array.shape)


def _bucket(hashes: np.ndarray, buckets: int) -> np.ndarray:
    """Hashes in [0, buckets), or below 2**63 - 1 where `buckets` is 0."""
    # Without buckets TensorFlow takes the largest int64 as their number.
    return (hashes % np.uint64(buckets or (1 << 63) - 1)).astype(np.int64)


def hashed(values: tuple[object, ...], buckets: int, key: int) -> int:
    """The hash of a combination."""
    hashes = np.full(1, key, np.uint64)
    for value in values:
        kind = object if isinstance(value, bytes) else np.int64
        hashes = _joined(hashes, _fingerprints(np.array([value], kind)))
    return int(_bucket(hashes, buckets)[0])


def _of_matrices(parts: list[Tensor], buckets: int, key: int) -> SparseTensor:
    """The hashes of matrices, whose shapes say how many there are: in a trace they are a step."""
    rows, width = parts[0].spec.shape[0], math.prod(p.spec.shape[1] for p in parts)
    if any(p.spec.shape[0] != rows for p in parts):
        raise InvalidArgumentError(f"cross_hashed: the inputs must be matrices of one number of "
                                   f"rows; got {', '.join(str(p.spec) for p in parts)}")

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        # Each input multiplies the columns, so that the last changes fastest, as in `combined`.
        hashes: Any = np.full((len(arrays[0]), 1), key, np.uint64)
        for array in arrays:
            hashes = _joined(hashes[:, :, None], _fingerprints(array)[:, None, :])
            hashes = hashes.reshape(len(array), hashes.shape[1] * hashes.shape[2])
        numbers = _bucket(hashes, buckets)
        return [np.indices(numbers.shape, np.int64).reshape(2, -1).T, numbers.reshape(-1)]

    at, values = step("cross_hashed", run, parts, [
        Spec((rows * width, 2), int64), Spec((rows * width,), int64)])
    return SparseTensor._of_parts(at, values, (rows, width))


def hashing(num_buckets: int, hash_key: int | None) -> tuple[int, int]:
    """The number of buckets and the key of `cross_hashed`."""
    buckets = as_int(num_buckets, "cross_hashed: num_buckets")
    if not 0 <= buckets < 1 << 63:
        raise InvalidArgumentError(f"cross_hashed: num_buckets must be 0 or more, and int64; got "
                                   f"{shown(num_buckets)}")
    return buckets, HASH_KEY if hash_key is None else (
        as_int(hash_key, "cross_hashed: hash_key") & _WORD)


def cross_hashed(inputs: TensorLike, num_buckets: int = 0, hash_key: int | None = None,
                 name: str | None = None) -> SparseTensor:
    """`cross` with a hash in place of every string: int64, in [0, num_buckets) where that is given.
    Raises InvalidArgumentError: the inputs do not fit, or `num_buckets` is negative."""
    buckets, key = hashing(num_buckets, hash_key)
    items = as_items(inputs, "cross_hashed: inputs")
    if items and not any(isinstance(x, CompositeTensor) for x in items):
        return _of_matrices([_matrix("cross_hashed", x) for x in items], buckets, key)
    return _packed([[hashed(values, buckets, key) for values in row]
                    for row in combined("cross_hashed", inputs)], np.int64)


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
        # TensorFlow gives the values of a set in order.
        chosen = sorted(choose(first.get(place, set()), second.get(place, set())))
        at += [(*place, i) for i in range(len(chosen))]
        items += chosen
        longest = max(longest, len(chosen))
    values = placed(np.array(items, object if x.dtype is string else x.dtype.np_dtype), x)
    rows = np.array(at, np.int64).reshape(-1, len(lead) + 1)
    return SparseTensor._of_rows(rows, values, (*lead, longest))


def intersection(a: Tensor, b: Tensor, validate_indices: bool = True) -> SparseTensor:
    """Of each row of the last axis, the values that are in `a` and in `b`, sorted: integers or
    strings, dense or sparse, of one shape but for the last axis. Raises InvalidArgumentError: their
    shapes or dtypes do not fit."""
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

"""Index tuples of SparseTensors as numbers of cells, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import host
from gtape.ops.sparse.tensor import SparseTensor

Ints = tuple[int, ...]


@primitive(nondifferentiable=True, tf_name="SparseReshape")
def cells_(xp: ArrayModule, indices: Array, *, shape: Ints, axes: Ints) -> Array:
    """The numbers of the cells, in row-major order, of the tensor of the chosen `axes` alone."""
    cells = xp.zeros(indices.shape[:1], np.int64)
    for axis in axes:
        cells = cells * shape[axis] + indices[:, axis]
    return cells


@cells_.infer
def _(indices: Spec, *, shape: Ints, axes: Ints) -> Spec:
    if math.prod(shape[a] for a in axes) >= 1 << 63:
        raise InvalidArgumentError(f"a sparse shape must have fewer than 2**63 cells here; got "
                                   f"{list(shape)}")
    return Spec(indices.shape[:1], int64)


cells_.cases = [case(ints(4, 2, below=3), shape=(3, 3), axes=(0, 1))]


@primitive(nondifferentiable=True, tf_name="SparseReshape")
def places_(xp: ArrayModule, cells: Array, *, shape: Ints) -> Array:
    """The index tuples of cells of a tensor of `shape`: the inverse of `cells_`."""
    parts, cells = [], cells.astype(np.int64)
    for length in reversed(shape):
        parts.append(cells % max(length, 1))
        cells = cells // max(length, 1)
    if not parts:
        return xp.zeros((cells.shape[0], 0), np.int64)
    return xp.stack(parts[::-1], axis=1)


places_.infer(lambda cells, *, shape: Spec((*cells.shape, len(shape)), int64))
places_.cases = [case(ints(4, below=6), shape=(2, 3))]


@primitive(nondifferentiable=True, tf_name="SparseReorder")
def order_(xp: ArrayModule, cells: Array) -> Any:
    """The order that sorts them, equal ones as they came."""
    return xp.argsort(cells, kind="stable").astype(np.int64)


order_.infer(lambda cells: Spec(cells.shape, int64))
order_.cases = [case(ints(5, below=9))]


@primitive(nondifferentiable=True, tf_name="GatherV2")
def columns_(xp: ArrayModule, indices: Array, *, axes: Ints) -> Array:
    """The chosen columns of index tuples; -1 stands for a column of zeros."""
    columns = xp.zeros((indices.shape[0], len(axes)), np.int64)
    for i, axis in enumerate(axes):
        if axis >= 0:
            columns[:, i] = indices[:, axis]
    return columns


columns_.infer(lambda indices, *, axes: Spec((indices.shape[0], len(axes)), int64))
columns_.cases = [case(ints(4, 3, below=3), axes=(2, -1, 0))]


def all_cells(x: SparseTensor) -> Tensor:
    """The number of the cell of each value."""
    shape = x._lengths
    return cells_(x.indices, shape=shape, axes=tuple(range(len(shape))))


def keys_of(lengths: Ints, *rows: np.ndarray) -> list[np.ndarray]:
    """Numbers that order index tuples as the tuples are, equal for equal ones."""
    if math.prod(lengths) < 1 << 63:
        every = []
        for part in rows:
            keys = np.zeros(len(part), np.int64)
            for axis, length in enumerate(lengths):
                keys = keys * length + part[:, axis]
            every.append(keys)
        return every
    # The number of a cell would overflow int64: the rank among all tuples orders them as well.
    joined = np.unique(np.concatenate(rows), axis=0, return_inverse=True)[1].reshape(-1)
    return np.split(joined, np.cumsum([len(part) for part in rows])[:-1])


def check_order(x: SparseTensor) -> None:
    """Check that the indices are within the shape, in row-major order, and none comes twice.

    Raises:
        InvalidArgumentError: they are not.
    """
    if type(x.indices) is not EagerTensor:
        return
    rows = host(x.indices)
    wrong = ((rows < 0) | (rows >= np.array(x._lengths, np.int64))).any(axis=1)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidArgumentError(f"indices[{at}] = {rows[at].tolist()} is out of bounds: need "
                                   f"0 <= index < {list(x._lengths)}")
    (keys,) = keys_of(x._lengths, rows)
    steps = keys[1:] - keys[:-1]
    if (steps <= 0).any():
        at = int((steps <= 0).argmax()) + 1
        how = "is repeated" if steps[at - 1] == 0 else (
            "is out of order. Many sparse ops require sorted indices. Use tf.sparse.reorder to "
            "create a correctly ordered copy")
        raise InvalidArgumentError(f"indices[{at}] = {rows[at].tolist()} {how}")


def sparse(value: SparseTensor, name: str) -> SparseTensor:
    """A SparseTensor as it is.

    Raises:
        TypeError: it is none.
    """
    try:
        return SparseTensor.from_value(value)
    except TypeError:
        raise TypeError(f"tf.sparse.{name} takes a SparseTensor; got a {type(value).__name__}. "
                        f"Write tf.sparse.from_dense(x)") from None

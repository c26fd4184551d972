"""Composites: sparse tensors as leaves of elements, batched and taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.device import CPU
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.specs import CompositeSpec
from gtape.core.tensor import EagerTensor
from gtape.data.elements import tensor
from gtape.ops.sparse.tensor import SparseTensor, SparseTensorSpec


def stacked(leaves: Sequence[Any]) -> Any:
    """Leaves, one of each element, as one leaf.

    Raises:
        InvalidArgumentError: they are of a kind, or of shapes, that have no batches.
    """
    if all(isinstance(leaf, SparseTensor) for leaf in leaves):
        return _stacked_sparse(leaves)
    raise InvalidArgumentError(f"batch: {leaves[0]!r} cannot be batched; `map` elements to tensors "
                               f"before")


def _stacked_sparse(leaves: Sequence[SparseTensor]) -> SparseTensor:
    shapes = [tuple(leaf.shape.as_list()) for leaf in leaves]
    if len({len(shape) for shape in shapes}) != 1:
        raise InvalidArgumentError(f"batch: sparse tensors of one batch must have one rank; got "
                                   f"{shapes}")
    counts = [len(leaf.values._a) for leaf in leaves]
    numbers = np.repeat(np.arange(len(leaves)), counts)
    indices = np.concatenate([leaf.indices._a for leaf in leaves])
    values = np.concatenate([leaf.values._a for leaf in leaves])
    longest = [max(lengths) for lengths in zip(*shapes)]
    return SparseTensor(
        EagerTensor(np.column_stack([numbers, indices]).astype(np.int64), CPU.typed(int64)),
        EagerTensor(values, leaves[0].values._t), np.array([len(leaves), *longest], np.int64))


def rows(leaf: Any) -> tuple[int, Callable[[int], Any]]:
    """How many rows a leaf has, and a function that gives each."""
    if not isinstance(leaf, SparseTensor):
        raise InvalidArgumentError(f"{leaf!r} has no rows")
    order = np.lexsort(leaf.indices._a.T[::-1])
    indices, values = leaf.indices._a[order], leaf.values._a[order]
    lengths = [int(n) for n in leaf.dense_shape._a]  # type: ignore[attr-defined]
    count = lengths.pop(0)
    limits = np.searchsorted(indices[:, 0], np.arange(count + 1))

    def row(at: int) -> SparseTensor:
        part = slice(limits[at], limits[at + 1])
        return SparseTensor(tensor(indices[part, 1:]), EagerTensor(values[part], leaf.values._t),
                            np.array(lengths, np.int64))

    return count, row


def batched_spec(spec: CompositeSpec, length: int | None) -> Any:
    """The spec of batches of leaves of `spec`."""
    _known(spec)
    return spec.with_shape([length, *spec.shape.as_list()])  # type: ignore[attr-defined]


def row_spec(spec: CompositeSpec) -> Any:
    """The spec of the rows of leaves of `spec`."""
    _known(spec)
    return spec.with_shape(spec.shape.as_list()[1:])  # type: ignore[attr-defined]


def _known(spec: CompositeSpec) -> None:
    if not isinstance(spec, SparseTensorSpec) or spec.shape.dims is None:
        raise TypeError(f"elements of {spec} cannot be batched; `map` them to tensors before")

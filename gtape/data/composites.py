"""Composites: sparse and ragged tensors as leaves of elements, batched and taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import CompositeSpec, TensorSpec, TypeSpec
from gtape.data import elements
from gtape.ops.ragged import joining
from gtape.ops.ragged.partition import splits_dtype as splits_dtype
from gtape.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from gtape.ops.sparse.tensor import SparseTensor, SparseTensorSpec


def stacked(leaves: Sequence[Any]) -> Any:
    """Leaves, one of each element, as one leaf."""
    if all(isinstance(leaf, SparseTensor) for leaf in leaves):
        return _stacked_sparse(leaves)
    if all(isinstance(leaf, RaggedTensor) for leaf in leaves):
        return ragged(leaves, leaves[0].row_splits.dtype)
    raise InvalidArgumentError(f"batch: {leaves[0]!r} cannot be batched; `map` elements to tensors "
                               f"before")


def _stacked_sparse(leaves: Sequence[SparseTensor]) -> SparseTensor:
    shapes = [tuple(leaf.shape.as_list()) for leaf in leaves]
    if len({len(shape) for shape in shapes}) != 1:
        raise InvalidArgumentError(f"batch: sparse tensors of one batch must have one rank; got "
                                   f"{shapes}")
    numbers = np.repeat(np.arange(len(leaves)), [len(leaf.values._a) for leaf in leaves])
    indices = np.concatenate([leaf.indices._a for leaf in leaves])
    values = np.concatenate([leaf.values._a for leaf in leaves])
    # As TensorFlow does: sparse tensors of one batch may differ in their shapes.
    longest = [max(lengths) for lengths in zip(*shapes)]
    return SparseTensor(
        elements.tensor(np.column_stack([numbers, indices]).astype(np.int64)),
        EagerTensor(values, leaves[0].values._t), np.array([len(leaves), *longest], np.int64))


def ragged(leaves: Sequence[Any], splits_dtype: DType) -> RaggedTensor:
    """Tensors or RaggedTensors of one rank as the rows of a RaggedTensor."""
    if not all(type(leaf) is EagerTensor for leaf in leaves):
        stack: RaggedTensor = joining.stack(leaves, 0)
        return stack.with_row_splits_dtype(splits_dtype)
    if not leaves[0].ndim:
        raise InvalidArgumentError("ragged_batch: scalars have no rows; use `batch`")
    if len({(leaf._t, leaf._a.shape[1:]) for leaf in leaves}) != 1:
        raise InvalidArgumentError(f"ragged_batch: elements may differ in their first lengths "
                                   f"only; got {', '.join(str(x.spec) for x in leaves[:4])}")
    ends = np.cumsum([0, *(len(leaf._a) for leaf in leaves)])
    values = EagerTensor(np.concatenate([leaf._a for leaf in leaves]), leaves[0]._t)
    return RaggedTensor.from_row_splits(
        values, elements.tensor(ends.astype(splits_dtype.np_dtype)), validate=False)


def rows(leaf: CompositeTensor) -> tuple[int, Callable[[int], Any]]:
    """How many rows a leaf has, and a function that gives each."""
    if isinstance(leaf, RaggedTensor):
        ragged_rows = leaf._rows_()
        return len(ragged_rows), ragged_rows.__getitem__
    if not isinstance(leaf, SparseTensor):
        raise InvalidArgumentError(f"{leaf!r} has no rows")
    # Indices may come in any order; the rows are then stretches, found by bisection.
    order = np.lexsort(leaf.indices._a.T[::-1])
    indices, values = leaf.indices._a[order], leaf.values._a[order]
    count, *lengths = [int(n) for n in leaf.dense_shape._a]
    limits = np.searchsorted(indices[:, 0], np.arange(count + 1))

    def row(at: int) -> SparseTensor:
        part = slice(limits[at], limits[at + 1])
        return SparseTensor(elements.tensor(indices[part, 1:]),
                            EagerTensor(values[part], leaf.values._t), np.array(lengths, np.int64))

    return count, row


def batched_spec(spec: CompositeSpec, length: int | None) -> CompositeSpec:
    """The spec of batches of leaves of `spec`."""
    return _with_axes(spec, [length, *_lengths(spec)], 1)


def row_spec(spec: CompositeSpec) -> CompositeSpec:
    """The spec of the rows of leaves of `spec`."""
    return _with_axes(spec, _lengths(spec)[1:], -1)


def _with_axes(spec: Any, shape: list[int | None], more: int) -> CompositeSpec:
    """A spec like `spec` of another shape, and with `more` ragged axes."""
    if isinstance(spec, SparseTensorSpec):
        return spec.with_shape(shape)
    return RaggedTensorSpec(shape, spec.dtype, max(0, spec.ragged_rank + more),
                            spec.row_splits_dtype)


def _lengths(spec: TypeSpec) -> list[int | None]:
    if not isinstance(spec, (SparseTensorSpec, RaggedTensorSpec)) or spec.shape.dims is None:
        raise TypeError(f"elements of {spec} cannot be batched; `map` them to tensors before")
    return list(spec.shape.dims)


def ragged_spec(spec: TypeSpec, splits_dtype: DType) -> Any:
    """The specs of elements that `ragged_batch` batches: ragged where a length is not known."""
    return nest.map_structure(
        lambda leaf: leaf if not isinstance(leaf, TensorSpec) or leaf.shape.is_fully_defined()
        else RaggedTensorSpec(leaf.shape, leaf.dtype, 0, splits_dtype), spec)


def ragged_leaves(spec: TypeSpec | tuple[TypeSpec, TypeSpec]) -> dict[int, DType]:
    """The places of the leaves that are tensors now and ragged in a batch, with the dtype of their
    splits."""
    return {at: leaf.row_splits_dtype for at, leaf in enumerate(nest.flatten(spec))
            if isinstance(leaf, RaggedTensorSpec) and not leaf.ragged_rank}


def dense_spec(spec: object) -> Any:
    """The specs of what leaves are by themselves: without ragged axes they are tensors."""
    return nest.map_structure(
        lambda leaf: TensorSpec(leaf.shape, leaf.dtype)
        if isinstance(leaf, RaggedTensorSpec) and not leaf.ragged_rank else leaf, spec)

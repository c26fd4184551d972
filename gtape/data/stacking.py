"""Stacking: elements become one element with a new first axis, and the reverse.

Leaves are tensors, None, and sparse and ragged tensors: of these there are batches too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Iterator as Elements
from types import ModuleType
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import CompositeSpec, NoneTensorSpec, TensorSpec, TypeSpec
from gtape.data import elements

# ---------------------------------------------------------------------- several as one


def stacked(leaves: Sequence[Any]) -> Any:
    """Leaves, one of each element, as one leaf."""
    first = leaves[0]
    if first is None:
        return None
    if type(first) is not EagerTensor:
        return composites().stacked(leaves)
    shape, array_type = first._a.shape, first._t
    # Not np.stack, which converts and checks each array anew, and takes longer than the copies of
    # small ones.
    whole = np.empty((len(leaves), *shape), array_type.dtype.np_dtype)
    for at, leaf in enumerate(leaves):
        array = leaf._a
        # In the same loop as the copy: a pass of its own over small leaves would cost as much
        # again.
        if leaf._t is not array_type or array.shape != shape:
            raise _unequal(leaves, at)
        whole[at] = array if shape or whole.dtype != object else array[()]
    return EagerTensor(whole, array_type)


def composites() -> ModuleType:
    """What knows sparse and ragged leaves: it brings their tensors, which few pipelines have."""
    from gtape.data import composites

    return composites


def _unequal(leaves: Sequence[Tensor], at: int) -> InvalidArgumentError:
    first, other = leaves[0], leaves[at]
    advice = (" Use `padded_batch` for elements of different lengths." if
              first.dtype is other.dtype else "")
    return InvalidArgumentError(
        f"Cannot batch tensors with different shapes: the first element is {first.spec}, element "
        f"{at} of the batch {other.spec}.{advice}")


def batched(items: Sequence[object], ragged: Mapping[int, object] | None = None) -> Any:
    """Elements as one; `ragged` has the places of leaves that become so, with the dtypes of their
    row splits."""
    first = items[0]
    if ragged:
        leaves = zip(*[elements.flatten(item) for item in items])
        return nest.pack_sequence_as(first, [
            composites().ragged(column, ragged[at]) if at in ragged else stacked(column)
            for at, column in enumerate(leaves)])
    if type(first) is EagerTensor:
        return stacked(items)
    # The usual element, a tuple of tensors, needs no general taking apart.
    if type(first) is tuple and all(type(x) is EagerTensor for x in first):
        return tuple([stacked(column) for column in zip(*items)])
    columns = zip(*[elements.flatten(item) for item in items])
    return nest.pack_sequence_as(first, [stacked(column) for column in columns])


# ---------------------------------------------------------------------- one as several


def leaf_rows(leaf: Tensor, count: int) -> Elements[object]:
    """The rows of a leaf, `count` of them."""
    if leaf is None:
        return iter((None,) * count)
    array, array_type = leaf._a, leaf._t
    # Iterating over strings would give bytes objects.
    if array.dtype == object:
        return (elements.tensor(elements.row(array, at)) for at in range(count))
    return (EagerTensor(row, array_type) for row in array)


def rows(element: object) -> Elements[object]:
    """The slices of an element along the first axes of its leaves."""
    leaves = elements.flatten(element)
    pack = elements.packer(element)
    parts = [None if leaf is None else _parts(leaf) for leaf in leaves]
    lengths = [part[0] for part in parts if part is not None]
    # Checked before the first row is given, so that no rows come of an element that is refused.
    if len(set(lengths)) != 1:
        raise InvalidArgumentError(f"the leaves of an element must have first axes of one length "
                                   f"to be unbatched; got {lengths}")
    for at in range(lengths[0]):
        yield pack([None if part is None else part[1](at) for part in parts])


def _parts(leaf: TensorLike | CompositeTensor) -> tuple[int, Callable[[int], Any]]:
    """How many rows a leaf has, and a function that gives each."""
    if type(leaf) is EagerTensor:
        array = leaf._a
        if not array.ndim:
            raise InvalidArgumentError("unbatch takes elements with a first axis; got a scalar")
        return len(array), lambda at: elements.tensor(elements.row(array, at))
    return composites().rows(leaf)


# ---------------------------------------------------------------------- specs


def batched_spec(spec: object, length: int | None) -> Any:
    """The spec of batches of `length` elements, or of any number."""
    return nest.map_structure(lambda leaf: _with_dims(
        leaf, lambda dims: [length, *dims],
        lambda: composites().batched_spec(leaf, length)), spec)


def row_spec(spec: object, what: str) -> Any:
    """The spec of the slices of elements of `spec` along their first axes."""
    def of_leaf(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec) and leaf.shape.dims == ():
            raise ValueError(f"{what} takes tensors with a first axis; got {leaf}")
        return _with_dims(leaf, lambda dims: dims[1:], lambda: composites().row_spec(leaf))

    return nest.map_structure(of_leaf, spec)


def _with_dims(leaf: object, dims_of: Callable[[Any], Any], other: Callable[[], Any] | None = None,
               ) -> Any:
    """The spec of a tensor with other lengths, where they are known; `other()` of a composite."""
    if not isinstance(leaf, TensorSpec):
        return leaf if other is None or isinstance(leaf, NoneTensorSpec) else other()
    dims = leaf.shape.dims
    return leaf if dims is None else TensorSpec(dims_of(dims), leaf.dtype)


def ragged_leaves(spec: TypeSpec | tuple[TypeSpec, TypeSpec]) -> dict[int, DType]:
    """The places of the leaves that are tensors now and ragged in a batch, with the dtype of their
    splits."""
    return composites().ragged_leaves(spec) if _has_composites(spec) else {}


def dense_spec(spec: object) -> Any:
    """The specs of what leaves are by themselves: without ragged axes they are tensors."""
    return composites().dense_spec(spec) if _has_composites(spec) else spec


def _has_composites(spec: object) -> bool:
    return any(isinstance(leaf, CompositeSpec) for leaf in nest.flatten(spec))


def loosened(spec: TypeSpec) -> Any:
    """The specs of one element without its lengths: other elements may have other ones."""
    return nest.map_structure(lambda leaf: _with_dims(leaf, lambda dims: [None] * len(dims)), spec)


def merged_specs(specs: Sequence[TypeSpec], what: str) -> Any:
    """The specs that elements of all of these fit."""
    for other in specs[1:]:
        try:
            nest.assert_same_structure(specs[0], other)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{what}: Incompatible input datasets: {error}") from None

    def merged(*leaves: object) -> Any:
        if all(leaf == leaves[0] for leaf in leaves):
            return leaves[0]
        common = leaves[0].most_specific_common_supertype(leaves[1:]) if hasattr(
            leaves[0], "most_specific_common_supertype") else None
        if common is None:
            raise TypeError(f"{what}: Incompatible input datasets: no spec is common to "
                            f"{', '.join(map(str, leaves))}")
        return common

    return nest.map_structure(merged, *specs)

"""Stacking: elements become one element with a new first axis, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec
from gtape.data import elements


def stacked(leaves: Sequence[Any]) -> Any:
    """Leaves, one of each element, as one leaf.

    Raises:
        InvalidArgumentError: their shapes or dtypes differ.
    """
    first = leaves[0]
    if type(first) is not EagerTensor:
        return _stacked_values(leaves)
    shape, array_type = first._a.shape, first._t
    made = np.empty((len(leaves), *shape), array_type.dtype.np_dtype)
    for at, leaf in enumerate(leaves):
        array = leaf._a
        if leaf._t is not array_type or array.shape != shape:
            raise _unequal(leaves, at)
        made[at] = array if shape or made.dtype != object else array[()]
    return EagerTensor(made, array_type)


def _stacked_values(leaves: Sequence[Any]) -> Any:
    if leaves[0] is None:
        return None
    from gtape.data import composites

    return composites.stacked(leaves)


def _unequal(leaves: Sequence[Any], at: int) -> InvalidArgumentError:
    first, other = leaves[0], leaves[at]
    advice = (" Use `padded_batch` for elements of different lengths." if
              first.dtype is other.dtype else "")
    return InvalidArgumentError(
        f"Cannot batch tensors with different shapes: the first element is {first.spec}, element "
        f"{at} of the batch {other.spec}.{advice}")


def batched(items: Sequence[Any], ragged: Mapping[int, Any] | None = None) -> Any:
    """Elements as one element.

    Args:
        ragged: the places of leaves that become ragged, with the dtype of their row splits.
    """
    first = items[0]
    if ragged:
        from gtape.data import composites

        leaves = zip(*[elements.flatten(item) for item in items])
        return nest.pack_sequence_as(first, [
            composites.ragged(column, ragged[at]) if at in ragged else stacked(column)
            for at, column in enumerate(leaves)])
    if type(first) is EagerTensor:
        return stacked(items)
    if type(first) is tuple and all(type(x) is EagerTensor for x in first):
        return tuple([stacked(column) for column in zip(*items)])
    columns = zip(*[elements.flatten(item) for item in items])
    return nest.pack_sequence_as(first, [stacked(column) for column in columns])


def leaf_rows(leaf: Any, count: int) -> Elements[Any]:
    """The rows of a leaf, `count` of them."""
    if leaf is None:
        return iter((None,) * count)
    array, array_type = leaf._a, leaf._t
    if array.dtype == object:
        return (elements.tensor(elements.row(array, at)) for at in range(count))
    return (EagerTensor(row, array_type) for row in array)


def rows(element: Any) -> Elements[Any]:
    """The slices of an element along the first axes of its leaves.

    Raises:
        InvalidArgumentError: the first axes are not equally long.
    """
    leaves = elements.flatten(element)
    pack = elements.packer(element)
    parts = [_parts(leaf) for leaf in leaves if leaf is not None]
    lengths = {length for length, _ in parts}
    if len(lengths) != 1:
        raise InvalidArgumentError(f"the leaves of an element must have first axes of one length "
                                   f"to be unbatched; got {[n for n, _ in parts]}")
    found = iter(parts)
    getters = [None if leaf is None else next(found)[1] for leaf in leaves]
    for at in range(lengths.pop()):
        yield pack([None if get is None else get(at) for get in getters])


def _parts(leaf: Any) -> tuple[int, Any]:
    if type(leaf) is EagerTensor:
        array = leaf._a
        if not array.ndim:
            raise InvalidArgumentError("unbatch takes elements with a first axis; got a scalar")
        return len(array), lambda at: elements.tensor(elements.row(array, at))
    from gtape.data import composites

    return composites.rows(leaf)


def batched_spec(spec: Any, length: int | None) -> Any:
    """The spec of batches of `length` elements, or of any number."""
    def made(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            dims = leaf.shape.dims
            return TensorSpec(None if dims is None else [length, *dims], leaf.dtype)
        if isinstance(leaf, NoneTensorSpec):
            return leaf
        from gtape.data import composites

        return composites.batched_spec(leaf, length)

    return nest.map_structure(made, spec)


def row_spec(spec: Any, what: str) -> Any:
    """The spec of the slices of elements of `spec` along their first axes.

    Raises:
        ValueError: a leaf is a scalar.
    """
    def made(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            dims = leaf.shape.dims
            if dims == ():
                raise ValueError(f"{what} takes tensors with a first axis; got {leaf}")
            return TensorSpec(None if dims is None else dims[1:], leaf.dtype)
        if isinstance(leaf, NoneTensorSpec):
            return leaf
        from gtape.data import composites

        return composites.row_spec(leaf)

    return nest.map_structure(made, spec)


def loosened(spec: Any) -> Any:
    """The spec of one element's leaf without its lengths: other elements may have other ones."""
    if isinstance(spec, TensorSpec):
        dims = spec.shape.dims
        return TensorSpec(None if dims is None else [None] * len(dims), spec.dtype)
    return spec


def merged_specs(specs: Sequence[Any], what: str) -> Any:
    """The specs that elements of all of these fit.

    Raises:
        TypeError: the structures or dtypes differ.
    """
    for other in specs[1:]:
        try:
            nest.assert_same_structure(specs[0], other)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{what}: Incompatible input datasets: {error}") from None

    def made(*leaves: Any) -> Any:
        if all(leaf == leaves[0] for leaf in leaves):
            return leaves[0]
        found = leaves[0].most_specific_common_supertype(leaves[1:]) if hasattr(
            leaves[0], "most_specific_common_supertype") else None
        if found is None:
            raise TypeError(f"{what}: Incompatible input datasets: no spec is common to "
                            f"{', '.join(map(str, leaves))}")
        return found

    return nest.map_structure(made, *specs)

"""Elements: nests of tuples, namedtuples and dicts whose leaves are tensors.

A list is no nest here but a tensor. Leaves may also be None, other datasets, and values that
describe themselves by a `_type_spec`, as ragged and sparse tensors do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.placement import on
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec
from gtape.data.arranging import flattener, packer


def is_leaf(value: Any) -> bool:
    """Whether a value is a leaf as it stands: nothing has to be converted."""
    return isinstance(value, Tensor) or value is None or hasattr(value, "_type_spec")


def element_of(value: Any, leaf: Callable[[Any], Any] = convert) -> Any:
    """`value` as an element: what is no nest becomes a tensor, by `leaf`.

    Raises:
        ValueError, TypeError: a leaf is nothing that a tensor can be made of.
    """
    try:
        return _element(value, leaf)
    except RecursionError:
        raise nest.too_deep(value, 100, "the structure of an element") from None


def _element(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if type(value) is EagerTensor:
        return value
    if isinstance(value, Mapping):
        made = {key: _element(value[key], leaf) for key in value}
        return made if type(value) is dict else _like(value, made)
    if isinstance(value, tuple):
        items = [_element(item, leaf) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value if is_leaf(value) else leaf(value)


def _like(mapping: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    flat = [made[key] for key in nest.sorted_keys(mapping)]
    return nest.pack_sequence_as(mapping, flat)


def on_host(value: Any) -> Any:
    """An element with its tensors in host memory, where pipelines compute."""
    if type(value) is EagerTensor and value._t.device.is_host:
        return value
    return nest.map_structure(lambda leaf: leaf_mapped(_downloaded, leaf), value)


@on(CPU)
def hosted(value: Any, leaf: Callable[[Any], Any] = convert) -> Any:
    """`value` as an element in host memory; what is no tensor goes to no other device first.

    Raises as `element_of`.
    """
    return on_host(element_of(value, leaf))


def _downloaded(tensor: EagerTensor) -> EagerTensor:
    if tensor._t.device.is_host:
        return tensor
    return EagerTensor(tensor._t.device.download(tensor._a), CPU.typed(tensor.dtype))


def leaf_mapped(function: Callable[[EagerTensor], EagerTensor], leaf: Any) -> Any:
    """A leaf with `function` of its tensor; of each that it is made of, where it is a composite.
    Other leaves are left as they are."""
    if type(leaf) is EagerTensor:
        return function(leaf)
    return leaf._mapped_(function) if isinstance(leaf, CompositeTensor) else leaf


def spec_of(element: Any) -> Any:
    """The specs of an element's leaves, in its structure."""
    return nest.map_structure(leaf_spec, element)


def leaf_spec(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    return NoneTensorSpec() if leaf is None else leaf._type_spec


def flatten(element: Any) -> list[Any]:
    """The leaves of an element; of its specs."""
    return nest.flatten(element)


def row(array: np.ndarray, at: int) -> Any:
    """One row of an array, as the array of a tensor."""
    found = array[at]
    return _string(found) if array.dtype == object and array.ndim == 1 else found


def _string(value: Any) -> np.ndarray:
    made = np.empty((), object)
    made[()] = value
    return made


def tensor(array: Any) -> EagerTensor:
    """A host array that nobody writes to, as a tensor."""
    return EagerTensor(array, CPU.type_of(array.dtype))


def arguments(element: Any) -> tuple[Any, ...]:
    """The arguments with which an element calls a user's function: the items of a tuple."""
    return element if type(element) is tuple else (element,)


__all__ = ["arguments", "element_of", "flatten", "flattener", "hosted", "is_leaf",
           "leaf_mapped", "leaf_spec", "on_host", "packer", "row", "spec_of", "tensor"]

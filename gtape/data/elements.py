"""Elements: nests of tuples, namedtuples and dicts whose leaves are tensors.

A list is no nest here but a tensor. Leaves may also be None, other datasets, and values that
describe themselves by a `_type_spec`, as ragged and sparse tensors do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.device import CPU, on
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec, TypeSpec
from gtape.opdef.numpy_code import define


def element_of(value: object, leaf: Callable[[Any], Any] = convert) -> Any:
    """`value` as an element: what is no nest becomes a tensor, by `leaf`."""
    try:
        return _element(value, leaf)
    except RecursionError:
        raise nest.too_deep(value, 100, "the structure of an element") from None


def _element(value: object, leaf: Callable[[Any], Any]) -> Any:
    # What most elements are is asked first.
    if type(value) is EagerTensor:
        return value
    if isinstance(value, Mapping):
        by_key = {key: _element(value[key], leaf) for key in value}
        if type(value) is dict:
            return by_key
        return nest.pack_sequence_as(value, [by_key[key] for key in nest.sorted_keys(by_key)])
    if isinstance(value, tuple):
        items = [_element(item, leaf) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    # Composites and datasets are leaves as they stand, and have a spec.
    return value if isinstance(value, Tensor) or value is None or hasattr(
        value, "_type_spec") else leaf(value)


def on_host(value: object) -> Any:
    """An element with its tensors in host memory, where pipelines compute."""
    if type(value) is EagerTensor and value._t.device.is_host:
        return value
    return nest.map_structure(lambda leaf: leaf_mapped(_downloaded, leaf), value)


@on(CPU)
def hosted(value: object, leaf: Callable[[Any], Any] = convert) -> Any:
    """`value` as an element in host memory; what is no tensor goes to no other device first."""
    return on_host(element_of(value, leaf))


def _downloaded(tensor: EagerTensor) -> EagerTensor:
    if tensor._t.device.is_host:
        return tensor
    return EagerTensor(tensor._t.device.download(tensor._a), CPU.typed(tensor.dtype))


def leaf_mapped(function: Callable[[EagerTensor], EagerTensor],
                leaf: TensorLike | CompositeTensor | None) -> Any:
    """A leaf with `function` of its tensor; of each that it is made of, where it is a composite.
    Other leaves are left as they are."""
    if type(leaf) is EagerTensor:
        return function(leaf)
    return leaf._mapped_(function) if isinstance(leaf, CompositeTensor) else leaf


def spec_of(element: object) -> Any:
    """The specs of an element's leaves, in its structure."""
    return nest.map_structure(leaf_spec, element)


def leaf_spec(leaf: Any) -> TypeSpec:
    if isinstance(leaf, Tensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    return NoneTensorSpec() if leaf is None else leaf._type_spec


def flatten(element: object) -> list[Any]:
    """The leaves of an element; of its specs."""
    return nest.flatten(element)


def row(array: np.ndarray, at: int) -> Any:
    """One row of an array, as the array of a tensor."""
    # A string by itself would be a bytes object, not an array of one.
    if array.dtype != object or array.ndim > 1:
        return array[at]
    string = np.empty((), object)
    string[()] = array[at]
    return string


def tensor(array: np.generic | np.ndarray) -> EagerTensor:
    """A host array that nobody writes to, as a tensor."""
    return EagerTensor(array, CPU.type_of(array.dtype))


def arguments(element: object) -> tuple[Any, ...]:
    """The arguments with which an element calls a user's function: the items of a tuple."""
    # A namedtuple is one argument, as in TensorFlow: `type` and not isinstance.
    return element if type(element) is tuple else (element,)


class Untraceable(Exception):
    """A function of elements must run in Python: tracing found that it needs more than specs."""


def result_of(value: object) -> Any:
    """What a function returned, as an element; a list of results is a tuple of them. Raises
    Untraceable: it is being traced, and a result is no tensor."""
    # As in TensorFlow's map: a list that is returned is a structure, though one that is given is a
    # tensor.
    if type(value) is list:
        value = tuple(value)
    if tracer_now() is None:
        return value
    element = element_of(value)
    if not all(leaf is None or isinstance(leaf, Tensor) for leaf in nest.flatten(element)):
        raise Untraceable
    return element


def parts_like(value: Any, structure: Any, refusal: Callable[[Any, Any], Exception],
               ) -> list[object]:
    """What `value` has where `structure` has its leaves: any values, also nests."""
    if not nest.is_nested(structure):
        return [value]
    if isinstance(structure, dict):
        fits = isinstance(value, dict) and value.keys() == structure.keys()
    else:
        fits = nest.is_nested(value) and not isinstance(value, Mapping) and (
            len(value) == len(structure))
    if not fits:
        raise refusal(value, structure)
    keys: Any = (nest.sorted_keys(structure) if isinstance(structure, dict)
                 else range(len(structure)))
    return [part for key in keys for part in parts_like(value[key], structure[key], refusal)]


# Functions that take elements of one structure apart and put them together are written for each
# structure: every element passes through them.

#: Deeper structures are taken apart by general code: Python's parser takes brackets some 200 deep.
_DEEPEST = 50


def flattener(structure: object) -> Callable[[Any], Sequence[Any]]:
    """A function that gives the leaves of elements built like `structure`."""
    if not nest.is_nested(structure):
        return lambda element: (element,)
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return lambda element: element
    space: dict[str, Any] = {}
    parts: list[str] = []
    if not _reads(structure, "e", parts, space, 0):
        return nest.flatten
    # Keys and types reach the text by names of `space`, never as text: what a user calls a key
    # cannot become code.
    return define(f"def leaves(e):\n    return ({', '.join(parts)},)\n", "leaves", space)


def _reads(structure: Any, name: str, parts: list[str], space: dict[str, str], depth: int) -> bool:
    """Add the expression of every leaf; False where there is none."""
    if not nest.is_nested(structure):
        parts.append(name)
        return True
    # An empty part has no expression to read; general code passes over it.
    if depth == _DEEPEST or not len(structure):
        return False
    if isinstance(structure, Mapping):
        for key in nest.sorted_keys(structure):
            if not _reads(structure[key], f"{name}[{_named(key, space)}]", parts, space, depth + 1):
                return False
        return True
    return isinstance(structure, (tuple, list)) and all(
        _reads(item, f"{name}[{at}]", parts, space, depth + 1)
        for at, item in enumerate(structure))


def _named(value: Any, space: dict[str, str]) -> str:
    name = f"k{len(space)}"
    space[name] = value
    return name


def packer(structure: object) -> Callable[[Sequence[Any]], Any]:
    """A function that gives leaves the structure of `structure`."""
    if not nest.is_nested(structure):
        return itemgetter(0)
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return tuple
    space: dict[str, Any] = {}
    text = _written(structure, space, 0, [0])
    if text is None:
        return lambda leaves: nest.pack_sequence_as(structure, leaves)
    return define(f"def packed(x):\n    return {text}\n", "packed", space)


def _written(structure: Any, space: dict[str, Any], depth: int, count: list[int]) -> str | None:
    """The expression that puts leaves together; None where there is none."""
    if not nest.is_nested(structure):
        count[0] += 1
        return f"x[{count[0] - 1}]"
    kind = type(structure)
    if depth == _DEEPEST or not (kind in (tuple, list, dict) or hasattr(structure, "_fields")):
        return None
    keys = nest.sorted_keys(structure) if kind is dict else range(len(structure))
    texts = {key: _written(structure[key], space, depth + 1, count) for key in keys}
    if None in texts.values():
        return None
    if kind is dict:
        return "{" + ", ".join([f"{_named(key, space)}: {texts[key]}" for key in structure]) + "}"
    items = "".join([f"{text}, " for text in texts.values()])
    if kind is list:
        return f"[{items}]"
    return f"({items})" if kind is tuple else f"{_named(kind, space)}({items})"

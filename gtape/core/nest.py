"""Nested structures of lists, tuples, namedtuples, dicts and deques: flattened and packed again.

Dicts are flattened in sorted key order and come back in their own order. Anything else is a leaf.
Structures may nest as deep as they like; one that contains itself is an error.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gtape.core.composite_tensor import CompositeTensor, components
from gtape.core.formatting import shown

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

_SEQUENCES = (list, tuple, deque)


#: By type, of which a program has few: `issubclass` of an abstract class takes 0.4 us.
_nested_types: dict[type, bool] = {}


def is_nested(structure: object) -> bool:
    """Whether `structure` is a container that `flatten` looks into."""
    kind = type(structure)
    nested = _nested_types.get(kind)
    if nested is None:
        nested = _nested_types[kind] = issubclass(kind, (*_SEQUENCES, Mapping))
    return nested


def sorted_keys(mapping: Any) -> list[Any]:
    """The keys of a dict in the order in which its values are flattened.

    Raises:
        TypeError: they cannot be sorted.
    """
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError(
            f"the keys of a nested dict must be sortable; got {shown(list(mapping))}") from None


def _children(structure: Any) -> Iterator[object]:
    if isinstance(structure, Mapping):
        return (structure[key] for key in sorted_keys(structure))
    return iter(structure)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure`, depth first; a leaf by itself gives a list of one.

    Where `expand_composites` is true, a composite (SparseTensor, RaggedTensor, IndexedSlices) gives
    the tensors that it is made of.

    Raises:
        TypeError: the keys of a dict cannot be sorted.
        ValueError: the structure contains itself.
    """
    if expand_composites:
        return [part for leaf in flatten(structure) for part in components(leaf)]
    if not is_nested(structure):
        return [structure]
    # The usual argument, a flat list of tensors: no stack for it.
    if type(structure) in (list, tuple) and not any(is_nested(item) for item in structure):
        return list(structure)
    leaves: list[Any] = []
    path = [structure]
    stack = [_children(structure)]
    while stack:
        for child in stack[-1]:
            if is_nested(child):
                path.append(child)
                _check_path(path)
                stack.append(_children(child))
                break
            leaves.append(child)
        else:
            stack.pop()
            path.pop()
    return leaves


def _check_path(path: list[object]) -> None:
    """Refuse containers, each in the one before it, of which one comes twice.

    Looked at when the depth is 8, 16, 32 …: usual structures pay nothing, deep ones little, and
    few leaves are gathered before a structure without end is found out.
    """
    depth = len(path)
    if depth >= 8 and not depth & (depth - 1) and len({id(c) for c in path}) < depth:
        raise ValueError(f"a structure must not contain itself; got {shown(path[0])}")


def at_most(limit: int, structure: object, what: str) -> Any:
    """`structure`, if it does not nest deeper than `limit`.

    Raises:
        ValueError: it does, or contains itself.
    """
    stack = [_children(structure)] if is_nested(structure) else []
    while stack:
        child = next((c for c in stack[-1] if is_nested(c)), None)
        if child is None:
            stack.pop()
        elif len(stack) == limit:
            raise too_deep(structure, limit, what)
        else:
            stack.append(_children(child))
    return structure


def too_deep(structure: object, limit: int, what: str) -> ValueError:
    """The error for a structure that nests deeper than `limit`, or for good."""
    try:
        flatten(structure)
    except ValueError as error:
        return error
    return ValueError(f"{what} may nest {limit} deep; got {shown(structure)}")


def _rebuild(structure: Any, values: list[Any]) -> Any:
    """A container like `structure` with `values` as its children, in `_children` order."""
    if isinstance(structure, defaultdict):
        rebuilt: Any = defaultdict(structure.default_factory)
    elif isinstance(structure, OrderedDict):
        rebuilt = OrderedDict()
    elif isinstance(structure, Mapping):
        rebuilt = {}
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*values)
    else:
        return type(structure)(values)
    by_key = dict(zip(sorted_keys(structure), values))
    for key in structure:
        rebuilt[key] = by_key[key]
    return rebuilt


def _pack(structure: object, leaves: Iterator[object]) -> Any:
    """`leaves` arranged like `structure`. A loop: a structure may be deeper than Python's stack."""
    if not is_nested(structure):
        return next(leaves)
    # Each container with what is left of its children, and what took the place of the others.
    stack: list[tuple[Any, Iterator[Any], list[Any]]] = [(structure, _children(structure), [])]
    while True:
        container, children, values = stack[-1]
        for child in children:
            if is_nested(child):
                stack.append((child, _children(child), []))
                break
            values.append(next(leaves))
        else:
            rebuilt = _rebuild(container, values)
            stack.pop()
            if not stack:
                return rebuilt
            stack[-1][2].append(rebuilt)


def pack_sequence_as(structure: object, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """`flat_sequence` arranged like `structure`.

    Raises:
        ValueError: the number of leaves differs, or `structure` contains itself.
    """
    try:
        flat = list(flat_sequence)
    except TypeError:
        raise TypeError(f"pack_sequence_as: the flat sequence must be a list; got "
                        f"{shown(flat_sequence)}") from None
    wanted = len(flatten(structure, expand_composites))
    if len(flat) != wanted:
        raise ValueError(f"pack_sequence_as: the structure has {wanted} leaves, "
                         f"the sequence {len(flat)}")
    if not expand_composites:
        return _pack(structure, iter(flat))
    rest = iter(flat)
    return _pack(structure, iter([_composed(leaf, rest) for leaf in flatten(structure)]))


def _composed(leaf: TensorLike | CompositeTensor, parts: Iterator[object]) -> Any:
    """A composite like `leaf` made of the next of `parts`; of anything else the next itself."""
    if not isinstance(leaf, CompositeTensor):
        return next(parts)
    spec = leaf._type_spec
    return spec._from_components([_composed(part, parts) for part in spec._to_components(leaf)])


def _kind(structure: object) -> Any:
    return dict if isinstance(structure, Mapping) else type(structure)


def assert_same_structure(nest1: object, nest2: object, check_types: bool = True,
                          expand_composites: bool = False) -> None:
    """Check that two structures nest alike; where `expand_composites` is true, that composites
    stand where composites of their class do.

    Raises:
        ValueError: one has a leaf, other keys or another length where the other has not; or one
            contains itself.
        TypeError: the containers are of different types and `check_types` is true.
    """
    flatten(nest1)
    flatten(nest2)
    _check_alike(nest1, nest2, check_types, expand_composites)


def _check_alike(nest1: Any, nest2: Any, check_types: bool, composites: bool = False) -> None:
    """`assert_same_structure` of structures of which one is known to end."""
    pending = [(nest1, nest2)]
    while pending:
        a, b = pending.pop()
        if is_nested(a) != is_nested(b):
            raise ValueError(f"the structures differ: {shown(nest1)} and {shown(nest2)}")
        if not is_nested(a):
            if composites and type(a) is not type(b) and (
                    isinstance(a, CompositeTensor) or isinstance(b, CompositeTensor)):
                raise ValueError(f"the structures differ: {shown(a)} and {shown(b)}")
            continue
        if check_types and _kind(a) is not _kind(b):
            raise TypeError(f"the structures differ in type: {type(a).__name__} and "
                            f"{type(b).__name__}")
        if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
            raise ValueError(f"the keys differ: {shown(list(a))} and {shown(list(b))}")
        if len(a) != len(b):
            raise ValueError(f"the lengths differ: {len(a)} and {len(b)}")
        pending.extend(zip(_children(a), _children(b)))


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func` applied leaf by leaf, the results arranged like the first structure.

    Raises:
        ValueError, TypeError: as `assert_same_structure`.
    """
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if not structure or not callable(func):
        raise TypeError(f"map_structure takes a function and one structure or more; got "
                        f"{shown(func)} and {len(structure)} structures")
    flat = [flatten(s, expand) for s in structure]
    for other in structure[1:]:
        _check_alike(structure[0], other, check_types, expand)
    # Checked before the first call: `func` may do something that cannot be undone.
    results = [func(*leaves) for leaves in zip(*flat)]
    return pack_sequence_as(structure[0], results, expand) if expand else _pack(structure[0],
                                                                                iter(results))

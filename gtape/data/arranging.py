"""Arranging: functions that take elements of one structure apart and put them together.

They are written for each structure, since every element passes through them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gtape.core import nest
from gtape.opdef.printers.numpy import define

#: Deeper structures are taken apart by general code: Python's parser has a limit.
_DEEPEST = 50


def flattener(structure: Any) -> Callable[[Any], Sequence[Any]]:
    """A function that gives the leaves of elements built like `structure`."""
    if not nest.is_nested(structure):
        return lambda element: (element,)
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return _itself
    space: dict[str, Any] = {}
    parts: list[str] = []
    if not _reads(structure, "e", parts, space, 0):
        return nest.flatten
    return define(f"def leaves(e):\n    return ({', '.join(parts)},)\n", "leaves", space)


def _itself(element: Any) -> Any:
    return element


def _reads(structure: Any, name: str, parts: list[str], space: dict[str, Any], depth: int) -> bool:
    """Add the expression of every leaf; False where there is none."""
    if not nest.is_nested(structure):
        parts.append(name)
        return True
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


def _named(value: Any, space: dict[str, Any]) -> str:
    name = f"k{len(space)}"
    space[name] = value
    return name


def packer(structure: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that gives leaves the structure of `structure`."""
    if not nest.is_nested(structure):
        return _first
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return tuple
    space: dict[str, Any] = {}
    text = _written(structure, space, 0, [0])
    if text is None:
        return lambda leaves: nest.pack_sequence_as(structure, leaves)
    return define(f"def packed(x):\n    return {text}\n", "packed", space)


def _first(leaves: Sequence[Any]) -> Any:
    return leaves[0]


def _written(structure: Any, space: dict[str, Any], depth: int, count: list[int]) -> str | None:
    """The expression that puts leaves together; None where there is none."""
    if not nest.is_nested(structure):
        count[0] += 1
        return f"x[{count[0] - 1}]"
    kind = type(structure)
    if depth == _DEEPEST or not (kind in (tuple, list, dict) or hasattr(structure, "_fields")):
        return None
    keys = nest.sorted_keys(structure) if kind is dict else range(len(structure))
    found = {}
    for key in keys:
        found[key] = _written(structure[key], space, depth + 1, count)
        if found[key] is None:
            return None
    if kind is dict:
        return "{" + ", ".join([f"{_named(key, space)}: {found[key]}" for key in structure]) + "}"
    items = "".join([f"{text}, " for text in found.values()])
    if kind is list:
        return f"[{items}]"
    return f"({items})" if kind is tuple else f"{_named(kind, space)}({items})"

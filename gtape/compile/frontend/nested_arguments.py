"""Nested: what a call with tuples, lists and dicts of tensors is found by, and its tensors."""

from __future__ import annotations

from typing import Any

from gtape.compile.frontend.signature import PLAIN
from gtape.core import nest
from gtape.core.tensor import EagerTensor

CONTAINERS = frozenset({tuple, list, dict})
#: Deeper arguments are found by their full pattern, which also refuses those that hold themselves.
_DEEPEST = 8


def taken_apart(value: Any, parts: list[Any], tensors: list[Any], depth: int = 0) -> bool:
    """Append what tells `value` from other arguments to `parts`, and its tensors to `tensors`.

    Returns:
        False if something in it takes the long way: only its full pattern tells what it is.
    """
    kind = type(value)
    if kind is EagerTensor:
        parts.append(value._t)
        parts.append(value._a.shape)
        tensors.append(value)
    elif kind in PLAIN:
        parts.append(kind)
        parts.append(value)
    elif depth == _DEEPEST:
        return False
    elif kind is tuple or kind is list:
        parts.append(kind)
        parts.append(len(value))
        for item in value:
            if not taken_apart(item, parts, tensors, depth + 1):
                return False
    elif kind is dict and all(type(name) is str for name in value):
        parts.append(kind)
        parts.append(tuple(value))
        for name in nest.sorted_keys(value):
            if not taken_apart(value[name], parts, tensors, depth + 1):
                return False
    else:
        return False
    return True

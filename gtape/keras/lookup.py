"""Finding what a string such as 'relu' or 'glorot_uniform' names."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gtape.core.text import shown


def attribute(package: str, module_of: Mapping[str, str], space: dict[str, Any],
              name: str) -> Any:
    """`name` of a package whose modules load at first use, kept in its namespace `space`.

    Raises:
        AttributeError: no module of the package has it.
    """
    module = module_of.get(name)
    if module is None:
        raise AttributeError(f"{package} has no '{name}'; it has {', '.join(sorted(module_of))}")
    space[name] = made = getattr(importlib.import_module(f"{package}.{module}"), name)
    return made


def found(kind: str, table: Mapping[str, Any], identifier: Any) -> Any:
    """The entry of `table` that a string names.

    Raises:
        ValueError: there is none.
    """
    entry = table.get(identifier) or table.get(identifier.lower())
    if entry is None:
        near = difflib.get_close_matches(identifier, table, 3)
        hint = f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(sorted(table))}"
        raise ValueError(f"there is no {kind} '{identifier}'; {hint}")
    return entry


def resolve(kind: str, table: Mapping[str, Any], identifier: Any, base: type | None = None) -> Any:
    """An object of `identifier`: None and objects stay, strings and classes are instantiated.

    Raises:
        ValueError: an unknown string, or something that cannot be called.
    """
    if identifier is None:
        return None
    if isinstance(identifier, str):
        identifier = found(kind, table, identifier)
    if isinstance(identifier, type):
        return identifier()
    if not callable(identifier) and (base is None or not isinstance(identifier, base)):
        raise ValueError(f"a {kind} must be a name, a {kind} or a function; got "
                         f"{shown(identifier)}")
    return identifier


def by_class_name(*classes: type, **aliases: Any) -> dict[str, Any]:
    """A table that knows every class by its name, in snake case and in lower case too."""
    from gtape.keras.naming import snake_case

    table: dict[str, Any] = {}
    for made in classes:
        for spelled in (made.__name__, snake_case(made.__name__), made.__name__.lower()):
            table[spelled] = made
    return table | aliases


Function = Callable[..., Any]

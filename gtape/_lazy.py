"""Namespaces of names that lie elsewhere, as `gtape.math`: each is imported at its first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from gtape._names import missing, parsed


def attach(owner: str, table: dict[str, str], absent: Mapping[str, str] | None = None,
           ) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the module `owner`, whose names `table` has.
    `absent` says what to use instead of names that it lacks. Names that the table has under `owner`
    itself are its submodules."""
    names, namespace = parsed(table), sys.modules[owner].__dict__

    def find(name: str) -> Any:
        # Also asked by hasattr and copy, for names that no table has.
        if name not in names:
            advice = (absent or {}).get(name)
            raise AttributeError(f"{owner} has no '{name}': {advice}" if advice
                                 else missing(owner, name, names))
        module, attribute = names[name]
        # Kept in the module, whose __getattr__ is asked only for what is not there.
        namespace[name] = value = (import_module(f"{owner}.{name}") if module == owner
                                   else getattr(import_module(module), attribute))
        return value

    return find, lambda: sorted({*namespace, *names}), sorted(names)

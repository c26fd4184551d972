"""Which variables and layers an object holds: attributes are noted as they are set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gtape.core.module import Module, is_variable
from gtape.core.variable import Variable


class _Changes:
    """How often an object that holds variables was changed, anywhere."""

    count = 0


changes = _Changes()


def _leaves(value: Any) -> Iterator[Any]:
    """The variables and modules in a value, containers opened, in order."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        if isinstance(value, (Variable, Module)):
            yield value
        return
    for item in value:
        yield from _leaves(item)


class Tracker(Module):
    """Notes the attributes that hold variables, modules, or containers that may.

    `_tracked` maps attribute names to such values, in the order they were first set. Lists are
    looked into whenever somebody asks, so what is appended to them later is found as well.
    """

    _tracked: dict[str, Any]
    #: Some attribute may hold layers, so a call has to pass its circumstances on.
    _holder: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        made.__dict__.update(_tracked={}, _holder=False)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Variable):
            self._tracked[name] = value
            changes.count += 1
        elif isinstance(value, (Module, list, dict)) or (
                isinstance(value, tuple) and next(_leaves(value), None) is not None):
            self._tracked[name] = value
            self.__dict__["_holder"] = True
            changes.count += 1
        elif name in self._tracked:
            del self._tracked[name]
            changes.count += 1
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._tracked.pop(name, None)
        changes.count += 1
        object.__delattr__(self, name)

    def _settled(self) -> bool:
        """Whether only setting an attribute can change what is held: no lists or dicts."""
        for value in self._tracked.values():
            if isinstance(value, Variable):
                continue
            for item in value if isinstance(value, tuple) else (value,):
                if not isinstance(item, (Tracker, Variable)) or (
                        isinstance(item, Tracker) and not item._settled()):
                    return False
        return True

    def _held(self) -> Iterator[Any]:
        """Variables and modules held directly, each once."""
        seen = set()
        for value in self._tracked.values():
            leaves: Any = (value,) if isinstance(value, (Variable, Module)) else _leaves(value)
            for leaf in leaves:
                key = id(leaf._resource_()) if is_variable(leaf) else id(leaf)
                if key not in seen:
                    seen.add(key)
                    yield leaf

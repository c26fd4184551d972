"""What is to be saved of an object and of those it holds, by attribute paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gtape.core.module import Module, is_variable
from gtape.keras.metrics.metric import Metric
from gtape.keras.models.sequential import Sequential
from gtape.keras.optimizers.optimizer import Optimizer
from gtape.keras.seeds import SeedGenerator
from gtape.ops.generator import Generator
from gtape.train.experimental import PythonState
from gtape.train.random_state import NumPyState, SeedState

_SEQUENCES = (list, tuple, deque)
#: Attributes of layers and models that list what others hold, or that every epoch begins anew.
_NOT_SAVED = ("_tracked", "_listed", "_chain", "_loss_tracker")


class Holder:
    """Base class of what only holds named objects."""

    def held(self) -> Mapping[str, Any]:
        """The objects by name."""
        raise NotImplementedError


class Graph:
    """The variables, Python states and optimizers reached from some named objects.

    A thing reached by several paths has the shortest, of these the first in sorted order.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.variables: dict[str, Any] = {}
        self.states: dict[str, PythonState] = {}
        self.optimizers: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._seen: dict[int, Any] = {}
        queue = deque(_sorted_items(roots))
        while queue:
            path, value = queue.popleft()
            queue.extend((f"{path}/{name}", child) for name, child in self._visit(path, value))

    def _visit(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Note a value, unless it is known already; what it holds."""
        shared = value._resource_() if is_variable(value) else value
        if id(shared) in self._seen:
            return
        self._seen[id(shared)] = shared
        if not self._noted(path, value):
            yield from children(value)

    def _noted(self, path: str, value: Any) -> bool:
        """Whether a value is saved as one thing; it then has its name."""
        state = python_state(value)
        if is_variable(value):
            kind: dict[str, Any] = self.variables
        elif state is not None:
            kind, value = self.states, state
        elif isinstance(value, Optimizer):
            kind = self.optimizers
        else:
            return False
        if path in self._taken:
            raise ValueError(f"two things would be saved as '{path}': the keys of a dict must "
                             f"differ as texts")
        self._taken.add(path)
        kind[path] = value
        return True


def python_state(value: Any) -> PythonState | None:
    """How a value that is no tensor is saved; None when there is no way."""
    if isinstance(value, PythonState):
        return value
    if isinstance(value, np.random.Generator):
        return NumPyState(value)
    if isinstance(value, SeedGenerator):
        return SeedState(value)
    return None


def is_trackable(value: Any) -> bool:
    """Whether `value` is something that can be saved, or holds nothing else."""
    if isinstance(value, Mapping):
        return all(is_trackable(item) for item in value.values())
    if isinstance(value, _SEQUENCES):
        return all(is_trackable(item) for item in value)
    return (is_variable(value) or python_state(value) is not None
            or isinstance(value, (Module, Optimizer, Metric, Generator, Holder)))


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, by name."""
    if isinstance(value, Module):
        yield from _attributes(value)
    elif isinstance(value, Generator):
        yield "state", value.state
    elif isinstance(value, Metric):
        yield from _numbered(value.variables)
    elif isinstance(value, Holder):
        yield from _sorted_items(value.held())
    elif isinstance(value, Mapping):
        yield from _sorted_items(value)
    elif isinstance(value, _SEQUENCES):
        yield from _numbered(value)


def _numbered(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(i), item) for i, item in enumerate(items))


def _sorted_items(mapping: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    named = ((str(key).replace("%", "%25").replace("/", "%2F"), value)
             for key, value in mapping.items())
    return sorted(named, key=lambda item: item[0])


def _attributes(module: Module) -> Iterator[tuple[str, Any]]:
    """The attributes of a module, then the weights of a layer that no attribute holds."""
    attributes = {name: value for name, value in vars(module).items()
                  if name not in _NOT_SAVED}
    if isinstance(module, Sequential):
        attributes["layers"] = module.layers
    yield from _sorted_items(attributes)
    held = {id(value._resource_()) for value in attributes.values() if is_variable(value)}
    added: dict[str, Any] = {}
    for label, value in vars(module).get("_tracked", {}).items():
        if label.startswith("+") and id(value._resource_()) not in held:
            name = value.name
            while name in attributes or name in added:
                name += "_"
            added[name] = value
    yield from added.items()

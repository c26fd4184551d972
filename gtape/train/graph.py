"""What is to be saved of an object and of those it holds, by attribute paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gtape.core.module import Module, is_variable
from gtape.keras.layers.layer import Layer
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
        self._layers: dict[str, Layer] = {}
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
        if isinstance(value, Layer):
            self._layers[path] = value
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

    def unbuilt(self) -> list[str]:
        """The paths of layers whose weights are still to be made, without layers inside these, nor
        those that a built layer holds and never called."""
        waiting = [path for path, layer in self._layers.items()
                   if lacks_weights(layer) and not any(a.built for a in self._around(path))]
        return list(dict.fromkeys(self._outermost(path) for path in waiting))

    def _around(self, path: str) -> list[Layer]:
        parts = path.split("/")
        starts = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return [self._layers[start] for start in starts if start in self._layers]

    def _outermost(self, path: str) -> str:
        """The first unbuilt layer on the way to an unbuilt layer."""
        parts = path.split("/")
        starts = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return next((start for start in starts
                     if start in self._layers and not self._layers[start].built), path)


def lacks_weights(layer: Layer) -> bool:
    """Whether a layer has yet to run a `build` of its own; that of Sequential only builds others.

    A layer without such a method, such as Dropout, has no weights that could be missing.
    """
    return not layer.built and type(layer).build not in (Layer.build, Sequential.build)


def python_state(value: Any) -> PythonState | None:
    """How a value that is no tensor is saved; None when there is no way."""
    if isinstance(value, PythonState):
        return value
    if isinstance(value, np.random.Generator):
        return NumPyState(value)
    if isinstance(value, SeedGenerator):
        return SeedState(value)
    return None


def is_trackable(value: Any, path: str, holders: tuple[Any, ...] = ()) -> bool:
    """Whether the value at `path` is something that can be saved, or holds nothing else.

    Raises:
        ValueError: a list or dict holds itself.
    """
    if (is_variable(value) or python_state(value) is not None
            or isinstance(value, (Module, Optimizer, Metric, Generator, Holder))):
        return True
    if not isinstance(value, (Mapping, *_SEQUENCES)):
        return False
    if any(value is holder for holder in holders):
        raise ValueError(f"a Checkpoint takes lists and dicts that do not hold themselves; "
                         f"'{path}' is a {type(value).__name__} that it is in. Take it out")
    return all(is_trackable(item, f"{path}/{name}", (*holders, value))
               for name, item in children(value))


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

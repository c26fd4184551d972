"""What is to be saved of an object and of those it holds, by attribute paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gtape.core.module import Module
from gtape.core.variable import is_variable
from gtape.ops.random.generator import Generator
from gtape.train import keras_objects
from gtape.train.experimental import PythonState
from gtape.train.python_states import NumPyState

_SEQUENCES = (list, tuple, deque)


class ObjectHolder:
    """Base class of what only holds named objects."""

    def held(self) -> Mapping[str, Any]:
        """The objects by name."""
        raise NotImplementedError


class ObjectGraph:
    """The variables, Python states and optimizers reached from some named objects. A thing reached
    by several paths has the shortest, of these the first in sorted order."""

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.variables: dict[str, Any] = {}
        self.states: dict[str, PythonState] = {}
        self.optimizers: dict[str, Any] = {}
        #: Layers and models of Keras by path.
        self.layers: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._seen: dict[int, Any] = {}
        # Breadth first, so that the shortest path to a thing is the first.
        queue = deque(_sorted_items(roots))
        while queue:
            path, value = queue.popleft()
            queue.extend((f"{path}/{name}", child) for name, child in self._visit(path, value))

    def _visit(self, path: str, value: Any) -> Iterator[tuple[str, object]]:
        """Note a value, unless it is known already; what it holds."""
        # Two objects may be views of one buffer, as in shared layers; it is saved once.
        shared = value._resource_() if is_variable(value) else value
        if id(shared) in self._seen:
            return
        # Kept, since the id of what is gone may be another's.
        self._seen[id(shared)] = shared
        if keras_objects.is_layer(value):
            self.layers[path] = value
        if not self._noted(path, value):
            yield from children(value)

    def _noted(self, path: str, value: object) -> bool:
        """Whether a value is saved as one thing; it then has its name."""
        state = python_state(value)
        if is_variable(value):
            kind: dict[str, Any] = self.variables
        elif state is not None:
            kind, value = self.states, state
        elif keras_objects.is_optimizer(value):
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
        waiting = [path for path, layer in self.layers.items()
                   if keras_objects.lacks_weights(layer)
                   and not any(self.layers[start].built for start in self._around(path))]
        # Named by the outermost: what it holds is built with it.
        return list(dict.fromkeys(next(iter(self._around(path)), path) for path in waiting))

    def _around(self, path: str) -> list[str]:
        """The paths of the layers that hold what is at a path, the outermost first."""
        parts = path.split("/")
        starts = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return [start for start in starts if start in self.layers]


def python_state(value: object) -> PythonState | None:
    """How a value that is no tensor is saved; None when there is no way."""
    if isinstance(value, PythonState):
        return value
    # NumPy's class has no place for methods of ours.
    if isinstance(value, np.random.Generator):
        return NumPyState(value)
    return None


def is_trackable(value: object, path: str, holders: tuple[object, ...] = ()) -> bool:
    """Whether the value at `path` is something that can be saved, or holds nothing else. Raises
    ValueError: a list or dict holds itself."""
    if (is_variable(value) or python_state(value) is not None
            or isinstance(value, (Module, Generator, ObjectHolder))
            or keras_objects.has_state(value)):
        return True
    if not isinstance(value, (Mapping, *_SEQUENCES)):
        return False
    # Without end otherwise. Modules that hold each other are no circle: each is visited once.
    if any(value is holder for holder in holders):
        raise ValueError(f"a Checkpoint takes lists and dicts that do not hold themselves; "
                         f"'{path}' is a {type(value).__name__} that it is in. Take it out")
    return all(is_trackable(item, f"{path}/{name}", (*holders, value))
               for name, item in children(value))


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, by name."""
    if isinstance(value, Module):
        yield from _sorted_items(vars(value))
    elif isinstance(value, Generator):
        yield "state", value.state
    elif keras_objects.has_state(value):
        yield from _of_keras(value)
    elif isinstance(value, ObjectHolder):
        yield from _sorted_items(value.held())
    elif isinstance(value, Mapping):
        yield from _sorted_items(value)
    elif isinstance(value, _SEQUENCES):
        yield from _numbered(value)


def _numbered(items: Iterable[object]) -> Iterator[tuple[str, object]]:
    return ((str(i), item) for i, item in enumerate(items))


def _sorted_items(mapping: Mapping[Any, Any]) -> list[tuple[str, object]]:
    # A slash within a key would read as one between names; a percent sign marks what was escaped.
    named = ((str(key).replace("%", "%25").replace("/", "%2F"), value)
             for key, value in mapping.items())
    return sorted(named, key=lambda item: item[0])


def _of_keras(value: Any) -> Iterator[tuple[str, object]]:
    """The attributes of an object of Keras, then what it tracks and no attribute holds."""
    # By attributes first, whose names are the user's; Keras' own lists name by numbers.
    attributes = keras_objects.attributes(value)
    yield from _sorted_items(attributes)
    held: dict[int, Any] = {}
    _gather(attributes, held)
    yield from _sorted_items(keras_objects.others(value, attributes, held))


def _gather(value: object, held: dict[int, object]) -> None:
    """What containers hold, at any depth, by identity."""
    if id(value) not in held:
        held[id(value)] = value
        if isinstance(value, (Mapping, *_SEQUENCES)):
            for _, item in children(value):
                _gather(item, held)

"""The variables and states of a checkpoint by their names in the file, optimizers included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gtape.core.context import paused
from gtape.train import optimizer_state
from gtape.train.experimental import PythonState
from gtape.train.graph import ObjectGraph
from gtape.train.stored import Stored


class Targets:
    """Everything that a checkpoint keeps of some objects."""

    def __init__(self, graph: ObjectGraph) -> None:
        self.arrays = {name: value._resource_() for name, value in graph.variables.items()}
        self.states: dict[str, PythonState] = dict(graph.states)
        #: The paths of layers without their weights, for which the rest holds nothing.
        self.unbuilt_layers = graph.unbuilt()
        #: The names of the variables of each built optimizer.
        self.optimizers: dict[str, list[str]] = {}
        names = {id(variable): name for name, variable in self.arrays.items()}
        for path, optimizer in graph.optimizers.items():
            if optimizer.built:
                self.optimizers[path] = optimizer_state.known(optimizer, names)
            self.arrays.update(optimizer_state.state(optimizer, path, names))

    def stored(self) -> Stored:
        """The present values, unseen by tapes."""
        with paused():
            arrays = {name: variable._value._peek() for name, variable in self.arrays.items()}
        states = {name: state.serialize() for name, state in self.states.items()}
        return Stored(arrays, states, self.optimizers)


def to_build(graph: ObjectGraph, recorded: Mapping[str, Sequence[str]],
             ) -> Iterator[tuple[Any, list[Any]]]:
    """The optimizers that are not built yet, and the variables that they had in the file.

    An optimizer some of whose variables are missing is left out. So is one whose list is wrong, be
    its checksum right.
    """
    for path, optimizer in graph.optimizers.items():
        names = recorded.get(path, ())
        found = [graph.variables[name] for name in names if name in graph.variables]
        if not optimizer.built and found and len(found) == len(set(names)) == len(names):
            yield optimizer, found

"""The variables and states of a checkpoint by their names in the file, optimizers included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gtape.core.shape import TensorShape
from gtape.core.state import paused
from gtape.keras.optimizers.optimizer import Optimizer
from gtape.train import optimizer_state
from gtape.train.experimental import PythonState
from gtape.train.graph import Graph
from gtape.train.stored import Stored


class Target:
    """A place for an array: a variable, or the state that an optimizer will have for one."""

    def __init__(self, like: Any, variable: Any) -> None:
        resource = like._resource_()
        self.shape: TensorShape = like.shape
        self.dtype: str = resource._value.dtype.name
        #: None as long as the optimizer is not built.
        self.variable = variable

    def array(self) -> Any:
        """The present value in host memory, unseen by tapes."""
        return self.variable._resource_()._value._peek()


class Targets:
    """Everything that a checkpoint keeps of some objects.

    An optimizer that is not built yet has the variables that `optimizers` names for its path,
    provided that all of them are there; `build` builds it for these.
    """

    def __init__(self, roots: Mapping[str, Any],
                 optimizers: Mapping[str, Sequence[str]] | None = None) -> None:
        graph = Graph(roots)
        self.arrays = {name: Target(v, v) for name, v in graph.variables.items()}
        self.states: dict[str, PythonState] = dict(graph.states)
        #: The paths of layers without their weights, for which the rest holds nothing.
        self.unbuilt_layers = graph.unbuilt()
        #: The names of the variables of each built optimizer.
        self.optimizers: dict[str, list[str]] = {}
        self._unbuilt: list[tuple[Optimizer, list[Any]]] = []
        names = {id(v._resource_()): name for name, v in graph.variables.items()}
        for path, optimizer in graph.optimizers.items():
            recorded = (optimizers or {}).get(path, ())
            # A list that is wrong, be its checksum right, builds nothing.
            found = [graph.variables[name] for name in recorded if name in graph.variables]
            complete = len(found) == len(set(recorded)) == len(recorded)
            self._add_optimizer(path, optimizer, names, found if complete else [])

    def _add_optimizer(self, path: str, optimizer: Optimizer, names: dict[int, str],
                       recorded: list[Any]) -> None:
        if optimizer.built:
            variables = optimizer_state.known(optimizer)
            self.optimizers[path] = [names.get(id(v._resource_()), f"#{i}")
                                     for i, v in enumerate(variables)]
        else:
            variables = recorded
            if variables:
                self._unbuilt.append((optimizer, variables))
        for where, part, share in optimizer_state.parts(optimizer, path, variables):
            self._add_part(where, part, share, names)

    def _add_part(self, path: str, optimizer: Optimizer, variables: Sequence[Any],
                  names: dict[int, str]) -> None:
        for name, variable in optimizer_state.numbers(optimizer):
            self.arrays[f"{path}/{name}"] = Target(variable, variable)
        state = optimizer_state.slots(optimizer) if optimizer.built else {}
        for i, variable in enumerate(variables):
            owner = names.get(id(variable._resource_()), f"#{i}")
            for slot in optimizer_state.slot_names(optimizer):
                self.arrays[f"{path}/{slot}/{owner}"] = Target(variable, state.get((i, slot)))

    def build(self) -> bool:
        """Build the optimizers that can be; whether there were any."""
        for optimizer, variables in self._unbuilt:
            optimizer.build(variables)
        return bool(self._unbuilt)

    def stored(self) -> Stored:
        """The present values."""
        with paused():
            arrays = {name: target.array() for name, target in self.arrays.items()}
        states = {name: state.serialize() for name, state in self.states.items()}
        return Stored(arrays, states, self.optimizers)

"""The state of an optimizer that belongs to one variable, as a variable of its own."""

from __future__ import annotations

from typing import Any

from gtape.core.tensor import EagerTensor
from gtape.core.variable import ResourceVariable, Variable


class SlotVariable(Variable):
    """A view of a slice of an optimizer's flat state: reads copy it, `assign` writes to it."""

    __slots__ = ("__weakref__", "_at", "_group", "_path", "_slot")

    def __init__(self, group: Any, slot: int, at: int, path: str) -> None:
        self._group, self._slot, self._at = group, slot, at
        self._path = path

    def _slice(self) -> Any:
        start, end = self._group.bounds[self._at]
        return self._group.slots[self._slot][start:end]

    def _resource_(self) -> ResourceVariable:
        """A variable that holds a copy of the present state."""
        group = self._group
        copy = group.type.xp.array(self._slice()).reshape(group.shapes[self._at])
        return ResourceVariable(EagerTensor(copy, group.type), trainable=False,
                                name=self._path)

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The optimizer's name, the variable's path and the name of the state."""
        return self._path

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Any:
        """Replace the state. Raises as `Variable.assign`."""
        fitting = self._fitting(value, "assign", ValueError)
        self._slice()[...] = fitting._array_().reshape(-1)
        return self if read_value else None

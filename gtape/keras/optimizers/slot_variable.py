"""The state of an optimizer that belongs to one variable: for traces, and as a variable."""

from __future__ import annotations

from typing import Any

from gtape.core.device import ArrayType
from gtape.core.resource import VariableView
from gtape.kinds.array_cell import ArrayCell


class SlotCell(ArrayCell):
    """A slice of an optimizer's flat state.

    It stands where a variable holds its state, so that a variable can be a view of it.
    """

    __slots__ = ("_at", "_group", "_name", "_slot")

    _constraint = _declared = None
    _trainable = False

    def __init__(self, group: Any, slot: int, at: int) -> None:
        super().__init__()
        self._group, self._slot, self._at = group, slot, at
        self._name = f"{group.states[at]._name}_slot_{slot}"

    def _resource_(self) -> SlotCell:
        return self

    @property
    def name(self) -> str:
        return self._name

    def _array(self) -> Any:
        start, end = self._group.bounds[self._at]
        return self._group.slots[self._slot][start:end].reshape(self._group.shapes[self._at])

    def _type(self) -> ArrayType:
        return self._group.type


class SlotVariable(VariableView):
    """A variable whose state is a `SlotCell`."""

    __slots__ = ("_path",)

    def __init__(self, cell: SlotCell, path: str) -> None:
        super().__init__(cell)  # type: ignore[arg-type]
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The optimizer's name, the variable's path and the name of the state."""
        return self._path

    def _shown_name(self) -> str:
        return self.name

"""The variables of layers and optimizers: known by a short name and a path."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import as_dtype
from gtape.core.resource import ResourceVariable, VariableView
from gtape.core.scopes import scope_prefix
from gtape.core.state import active, paused, tracer_now
from gtape.core.tensor import EagerTensor
from gtape.keras.naming import path_of


class KerasVariable(VariableView):
    """A variable of a layer: `name` is 'kernel', `path` is 'dense/kernel'.

    Tapes list it under its path, as 'dense/kernel:0'.
    """

    __slots__ = ("_path", "regularizer")

    def __init__(self, initial_value: Any, dtype: Any = None, trainable: bool = True,
                 name: str = "variable", regularizer: Any = None, constraint: Any = None) -> None:
        self._path = path_of(name)
        token = scope_prefix.set("")
        try:
            state = ResourceVariable(initial_value, trainable=trainable, dtype=dtype,
                                     name=self._path, constraint=constraint)
        finally:
            scope_prefix.reset(token)
        super().__init__(state)
        self.regularizer = regularizer

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The names of the layers around it, and its own."""
        return self._path

    @property
    def trainable(self) -> bool:
        return self._state._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        from gtape.keras.layers.tracking import changes

        self._state._trainable = bool(value)
        changes.count += 1

    def _shown_name(self) -> str:
        return self._path


class HostNumber(KerasVariable):
    """A counter or rate: it stays in host memory, where it is read without waiting for a GPU.

    `dtype` is the dtype's name, as optimizers of Keras have it.
    """

    __slots__ = ()

    def __init__(self, value: Any, dtype: str, name: str) -> None:
        super().__init__(convert(value, as_dtype(dtype), CPU), trainable=False, name=name)

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return self._state._value.dtype.name

    def __repr__(self) -> str:
        return repr(VariableView(self._state))

    def number(self) -> Any:
        """The value as a NumPy number, unseen by tapes."""
        return self._state._value._array_()[()]

    def advance(self) -> None:
        """Add one."""
        if tracer_now() is None:
            self.put(self.number() + 1)
            return
        with paused():
            self._state._value = self._state._value + 1

    def put(self, number: Any) -> None:
        """Assign a number of the right dtype."""
        state = self._state
        made = EagerTensor(state._value.dtype.as_numpy_dtype(number), state._value._t)
        if active():
            state._written(made, False, None, state)
        else:
            state._value = made


Variable = KerasVariable

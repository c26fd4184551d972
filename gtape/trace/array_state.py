"""ArrayState: state in an array that stays where it is and is written in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gtape.core.context import new_key, tracer_now
from gtape.core.device import ArrayType
from gtape.core.state_ref import StateRef
from gtape.core.tensor import EagerTensor, Tensor

if TYPE_CHECKING:
    import numpy as np


class ArrayState(StateRef):
    """State of traces (see `trace.tracer`) over an array. Reads copy it, writes go into it."""

    __slots__ = ("__weakref__", "_k")

    #: What tapes ask of state that is read.
    trainable = False

    def __init__(self) -> None:
        self._k = new_key()

    @property
    def name(self) -> str:
        raise NotImplementedError

    def _array(self) -> Any:
        """The array, always the same memory."""
        raise NotImplementedError

    def _type(self) -> ArrayType:
        raise NotImplementedError

    def _initial_(self) -> EagerTensor:
        """For a trace: a copy of the state at this moment."""
        array_type = self._type()
        # A copy: the array is written in place, and a tensor never changes.
        return EagerTensor(array_type.xp.array(self._array()), array_type)

    @property
    def _value(self) -> Tensor:
        tracer = tracer_now()
        return self._initial_() if tracer is None else tracer.read(self)

    @_value.setter
    def _value(self, value: Tensor) -> None:
        tracer = tracer_now()
        if tracer is not None:
            tracer.write(self, value)
        else:
            self._array()[...] = value._array_()

    def _read_(self) -> Tensor:
        return self._value

    def _commit_(self, value: Tensor) -> None:
        """A traced function left this value."""
        self._value = value

    def _buffer_(self, writer: object) -> np.ndarray:
        """The array that a compiled program reads, and in which it leaves new values."""
        return self._array()

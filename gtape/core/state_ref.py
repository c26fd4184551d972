"""What tensors are read from: variables, what stands for them, and other state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gtape.core.device import ArrayType
    from gtape.core.dtypes import DType
    from gtape.core.tensor import EagerTensor, Tensor
    from gtape.core.variable_buffer import BufferWriter


class Readable:
    """Base of what is read wherever it is given for a tensor."""

    __slots__ = ()

    def _read_(self) -> Tensor:
        """The present value, noted by every tape of this thread."""
        raise NotImplementedError

    @property
    def _t(self) -> ArrayType:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError


class StateRef(Readable):
    """State that outlives a call, as traces see it: a traced function takes its value when it is
    called, and leaves another."""

    __slots__ = ()

    #: Identity on tapes and in traces; later ones are larger.
    _k: int
    #: Whether tapes watch it when it is read.
    trainable: Any
    name: Any

    def _initial_(self) -> EagerTensor:
        """The value at this moment."""
        raise NotImplementedError

    def _commit_(self, value: Tensor) -> None:
        """A traced function left this value."""
        raise NotImplementedError

    def _buffer_(self, writer: BufferWriter | None) -> Any:
        """The array in which a compiled program finds the value, and where `writer` leaves it."""
        raise NotImplementedError

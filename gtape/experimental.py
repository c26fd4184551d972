"""gtape.experimental: arrays without a copy, values that may be missing, NumPy's functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape.core.device import CPU
from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.data.iterators import Optional
from gtape.devices.probe import device_named, probe
from gtape.ops.numpy_style import namespace as numpy
from gtape.ops.ragged.partition import DynamicRaggedShape, RowPartition

#: Memory kinds of the DLPack protocol.
_HOST = 1
_CUDA = 2


class _Opened:
    """A DLPack capsule as an object that speaks the protocol."""

    def __init__(self, capsule: object, kind: int) -> None:
        self._capsule, self._kind = capsule, kind

    def __dlpack__(self, **ignored: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0


def from_dlpack(array: Any) -> Tensor:
    """A tensor that shares memory with any object that speaks DLPack (NumPy, CuPy, torch, JAX), or
    with what `to_dlpack` gave. Raises InvalidArgumentError: it speaks no DLPack, its memory is on a
    device that gtape does not use, or its dtype is none of gtape's. The owner must not write to the
    memory while the tensor is in use."""
    # By its name: before Python 3.13 the type of capsules stands nowhere.
    if type(array).__name__ == "PyCapsule":
        return _from_capsule(array)
    if not hasattr(array, "__dlpack_device__"):
        raise InvalidArgumentError(f"from_dlpack needs an object with __dlpack__; got "
                                   f"{type(array).__name__}")
    # Enumerations, in some libraries.
    kind, index = (int(part) for part in array.__dlpack_device__())
    if kind == _HOST:
        return wrap(np.from_dlpack(array))
    if kind != _CUDA:
        raise InvalidArgumentError(f"from_dlpack takes memory of the CPU or of an NVIDIA GPU; got "
                                   f"the DLPack device kind {kind}. Copy it to the host first")
    return wrap(_gpu(index).adopt(array))


def _from_capsule(capsule: Any) -> Tensor:
    """A capsule tells its device only when it is opened."""
    try:
        return wrap(np.from_dlpack(_Opened(capsule, _HOST)))
    # NumPy refuses a device's memory before it takes the capsule, which can be opened once.
    except (BufferError, RuntimeError):
        return wrap(_gpu(0).adopt(_Opened(capsule, _CUDA)))


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's memory as a DLPack capsule, without a copy. The receiver must not write."""
    return tensor.__dlpack__()


def from_array(array: Any) -> Tensor:
    """A tensor that shares memory with a NumPy array, a CuPy array, or an object with
    `__cuda_array_interface__`. The owner must not write to it while the tensor is in use. Raises
    InvalidArgumentError: it is none of these, its memory is on a GPU that gtape cannot use, or it
    holds no numbers in native byte order."""
    if isinstance(array, np.ndarray):
        array_type = CPU.type_of(array.dtype)
        # Ops would read bytes in the other order as other numbers.
        if not array.dtype.isnative or array_type.dtype is string:
            raise InvalidArgumentError(f"from_array needs numbers in native byte order; got "
                                       f"{array.dtype}. Use tf.constant, which copies")
        return EagerTensor(array, array_type)
    if not hasattr(array, "__cuda_array_interface__"):
        raise InvalidArgumentError(
            f"from_array takes a NumPy array or an object with __cuda_array_interface__; got "
            f"{type(array).__name__}. tf.constant copies lists and numbers")
    # CuPy's own arrays are taken as they are; others are adopted, which keeps their owner alive.
    owned = any(device.owns(array) for device in probe().devices)
    return wrap(array if owned else _gpu(0).adopt(array))


def _gpu(index: int) -> Any:
    """GPU `index`. Raises InvalidArgumentError, with the reason, when gtape cannot use it."""
    return device_named(f"GPU:{index}")


dlpack = SimpleNamespace(from_dlpack=from_dlpack, to_dlpack=to_dlpack)

__all__ = ["DynamicRaggedShape", "Optional", "RowPartition", "dlpack", "from_array", "from_dlpack",
           "numpy", "to_dlpack"]

"""gtape.experimental: arrays in and out without a copy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape.core.device import CPU, device_of
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.devices.probe import probe


def from_dlpack(array: Any) -> Tensor:
    """A tensor that shares memory with any object that speaks DLPack: NumPy, CuPy, torch, JAX.

    The owner must not write to the memory while the tensor is in use.

    Raises:
        InvalidArgumentError: the memory is on a device that gtape does not use, or the dtype is
            unknown.
    """
    if not hasattr(array, "__dlpack_device__"):
        raise InvalidArgumentError(f"from_dlpack needs an object with __dlpack__; got "
                                   f"{type(array).__name__}")
    kind = int(array.__dlpack_device__()[0])
    if kind == 1:
        return wrap(np.from_dlpack(array))
    devices = probe().devices
    if not devices:
        raise InvalidArgumentError("the array lives on a GPU, and gtape found none it can use; "
                                   "python -m gtape info says why")
    return wrap(devices[0].xp.from_dlpack(array))


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's memory as a DLPack capsule, without a copy. The receiver must not write."""
    return tensor.__dlpack__()  # type: ignore[attr-defined]


def from_array(array: Any) -> Tensor:
    """A tensor that shares memory with a NumPy array, a CuPy array, or an object with
    `__cuda_array_interface__`. The owner must not write to it while the tensor is in use.

    Raises:
        InvalidArgumentError: it is none of these, or not in native byte order.
    """
    if isinstance(array, np.ndarray):
        if not array.dtype.isnative:
            raise InvalidArgumentError(f"from_array needs native byte order; got {array.dtype}. "
                                       f"Use tf.constant, which copies")
        return EagerTensor(array, CPU.type_of(array.dtype))
    devices = probe().devices
    if hasattr(array, "__cuda_array_interface__") and devices:
        array = devices[0].xp.asarray(array)
    return EagerTensor(array, device_of(array).type_of(array.dtype))


dlpack = SimpleNamespace(from_dlpack=from_dlpack, to_dlpack=to_dlpack)

__all__ = ["dlpack", "from_array", "from_dlpack", "to_dlpack"]

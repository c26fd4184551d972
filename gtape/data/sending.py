"""Sending: elements go from host memory, where pipelines compute, to the devices that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core import nest
from gtape.core.device import Device
from gtape.core.dtypes import string
from gtape.core.tensor import EagerTensor
from gtape.data.elements import leaf_mapped


def uploaded(element: Any, device: Device) -> Any:
    """An element with its tensors on a device, but for strings."""
    return _mapped(lambda tensor: _uploaded(tensor, device), element)


def _uploaded(tensor: EagerTensor, device: Device) -> EagerTensor:
    if tensor._t.device is device:
        return tensor
    return EagerTensor(device.upload(tensor._a), device.typed(tensor.dtype))


def _mapped(function: Callable[[EagerTensor], EagerTensor], element: Any) -> Any:
    """An element with `function` of its tensors of numbers; strings live in host memory alone."""
    return nest.map_structure(
        lambda leaf: leaf if getattr(leaf, "dtype", None) is string else leaf_mapped(
            function, leaf), element)

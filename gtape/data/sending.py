"""Sending: elements go from host memory, where pipelines compute, to the devices that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape.core import nest
from gtape.core.device import Device
from gtape.core.dtypes import string
from gtape.core.tensor import EagerTensor
from gtape.data.elements import leaf_mapped


class Sent:
    """An element on its way to a device. It is received once, by the thread that uses it."""

    __slots__ = ("_copies", "_element", "device")

    def __init__(self, element: Any, device: Device) -> None:
        arrays: list[Any] = []

        def noted(tensor: EagerTensor) -> EagerTensor:
            if tensor._t.device.is_host:
                arrays.append(tensor._a)
            return tensor

        self._element, self.device = _mapped(noted, element), device
        self._copies = device.send(arrays)

    def received(self) -> Any:
        """The element on the device."""
        device, copies = self.device, iter(self._copies())

        def arrived(tensor: EagerTensor) -> EagerTensor:
            if tensor._t.device.is_host:
                return EagerTensor(next(copies), device.typed(tensor.dtype))
            return _uploaded(tensor, device)

        return _mapped(arrived, self._element)


def sent(element: Any, device: Device) -> Sent:
    """An element on its way to a device: where it goes already, or to this one."""
    return element if type(element) is Sent else Sent(element, device)


def received(element: Any) -> Any:
    """An element that may have been sent."""
    return element.received() if type(element) is Sent else element


def uploaded(element: Any, device: Device) -> Any:
    """An element that may have been sent; one that was not is copied to `device` now."""
    if type(element) is Sent:
        return element.received()
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

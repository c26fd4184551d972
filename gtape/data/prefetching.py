"""Prefetching: the next elements are computed, and sent to the device that uses them, while the
present one is used.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as Elements
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gtape.core import nest
from gtape.core.device import CPU, Device
from gtape.core.dtypes import string
from gtape.core.tensor import EagerTensor
from gtape.data.base import Same
from gtape.data.elements import leaf_mapped, on_host
from gtape.data.rows import Rows
from gtape.data.workers import Ahead, HandedBack, Pace
from gtape.devices.placing import device_named

if TYPE_CHECKING:
    from gtape.data.dataset import Dataset
from gtape.core.tensor import Tensor

#: How many elements are kept ready where the user leaves it open: one more than is needed while all
#: take equally long.
_USUAL = 2


class Prefetch(Same):
    """The elements, of which a thread keeps up to `size` ready; -1 leaves the number open.

    The thread is started when elements are seen to take their time. Where they take less than
    handing them over would, they are computed as they are asked for, from then on or again.
    """

    def __init__(self, dataset: Dataset, size: int) -> None:
        super().__init__(dataset)
        self._size = size

    def _iterate(self) -> Elements[Any]:
        return map(received, self._sent(CPU))

    def _sent(self, device: Device) -> Elements[object]:
        upstream = self._inputs[0]._sent(device)
        return ahead(upstream if device.is_host else (sent(e, device) for e in upstream),
                     self._size)

    def _rows(self) -> Rows | None:
        return self._inputs[0]._rows()


class Moved(Same):
    """The elements with their tensors on a device, and up to `size` more on their way there."""

    def __init__(self, dataset: Dataset, device: str, size: int) -> None:
        super().__init__(dataset)
        self._device = device_named(device)
        self._size = size

    def _iterate(self) -> Elements[Any]:
        return map(received, self._sent(self._device))

    def _sent(self, device: Device) -> Elements[object]:
        return ahead(map(self._moved, self._inputs[0]._sent(self._device)), self._size)

    def _moved(self, element: object) -> Any:
        if type(element) is Sent and element.device is not self._device:
            element = element.received()
        return on_host(element) if self._device.is_host else sent(element, self._device)


def ahead(upstream: Elements[object], size: int) -> Elements[object]:
    """The elements of a pass, of which up to `size` more are ready; -1 leaves the number open."""
    return _ahead(upstream, _USUAL if size < 0 else size) if size else upstream


def _ahead(upstream: Elements[object], size: int) -> Elements[object]:
    """The elements, computed by a thread while they take their time.

    Without it, one that was sent to a device is kept back until the next was sent too: to send them
    takes no time, and the device copies that one while it computes with this one.
    """
    kept: list[Sent] = []
    while True:
        pace = Pace()
        while not pace.slow:
            start = perf_counter()
            try:
                element = next(upstream)
            except Exception as error:
                yield from kept
                if isinstance(error, StopIteration):
                    return
                raise
            pace.add(perf_counter() - start)
            if type(element) is Sent:
                kept.append(element)
                if len(kept) == 1:
                    continue
                element = kept.pop(0)
            yield element
        try:
            yield from Ahead(upstream, size, kept).elements()
            return
        except HandedBack:
            kept = []


class Sent:
    """An element on its way to a device. It is received once, by the thread that uses it."""

    __slots__ = ("_copies", "_element", "device")

    def __init__(self, element: Tensor, device: Device) -> None:
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


def received(element: object) -> Any:
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


def _mapped(function: Callable[[EagerTensor], EagerTensor], element: Tensor) -> Any:
    """An element with `function` of its tensors of numbers; strings live in host memory alone."""
    return nest.map_structure(
        lambda leaf: leaf if getattr(leaf, "dtype", None) is string else leaf_mapped(
            function, leaf), element)

"""Prefetching: the next elements are computed, and sent to a device, while the present one is used.
"""

from __future__ import annotations

from collections.abc import Iterator as Elements
from time import perf_counter
from typing import Any

from gtape.core.device import CPU, Device
from gtape.data.dataset import Dataset
from gtape.data.elements import on_host
from gtape.data.rows import Rows
from gtape.data.sending import Sent, received, sent
from gtape.data.workers import Ahead, HandedBack, Pace

#: How many elements are kept ready where the user leaves it open.
_USUAL = 2


class Prefetch(Dataset):
    """The elements, of which a thread keeps up to `size` ready; -1 leaves the number open.

    The thread is started when elements are seen to take their time. Where they take less than
    handing them over would, they are computed as they are asked for, from then on or again.
    """

    def __init__(self, dataset: Any, size: int) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)
        self._size = size

    def _iterate(self) -> Elements[Any]:
        return map(received, self._sent(CPU))

    def _sent(self, device: Device) -> Elements[Any]:
        upstream = self._inputs[0]._sent(device)
        return ahead(upstream if device.is_host else (sent(e, device) for e in upstream),
                     self._size)

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()

    def _rows(self) -> Rows | None:
        return self._inputs[0]._rows()


class Moved(Dataset):
    """The elements with their tensors on a device, and up to `size` more on their way there."""

    def __init__(self, dataset: Any, device: Any, size: int) -> None:
        from gtape.devices.placing import device_named

        super().__init__(lambda: dataset.element_spec, dataset)
        self._device = device_named(device)
        self._size = size

    def _iterate(self) -> Elements[Any]:
        return map(received, self._sent(self._device))

    def _sent(self, device: Device) -> Elements[Any]:
        return ahead(map(self._moved, self._inputs[0]._sent(self._device)), self._size)

    def _moved(self, element: Any) -> Any:
        if type(element) is Sent and element.device is not self._device:
            element = element.received()
        return on_host(element) if self._device.is_host else sent(element, self._device)

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()


def ahead(upstream: Elements[Any], size: int) -> Elements[Any]:
    """The elements of a pass, of which up to `size` more are ready; -1 leaves the number open."""
    return _ahead(upstream, _USUAL if size < 0 else size) if size else upstream


def _ahead(upstream: Elements[Any], size: int) -> Elements[Any]:
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

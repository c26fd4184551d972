"""Prefetching: threads that compute elements ahead of time, for `map` and for `prefetch`, and
elements on their way to the device that uses them.

Threads are daemons, and everything that holds them up ends when the pass that they work for is
given up or Python ends: nobody has to wait for them.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from time import perf_counter
from typing import Any

from gtape.core import nest
from gtape.core.device import CPU, Device, on
from gtape.core.dtypes import string
from gtape.core.tensor import EagerTensor, Tensor
from gtape.data.base import Dataset, Same
from gtape.data.elements import leaf_mapped, on_host
from gtape.data.failures import failed
from gtape.data.rows import Elements, Rows
from gtape.devices.probe import device_named

#: How many elements are kept ready where the user leaves it open: one more than is needed while all
#: take equally long.
_USUAL = 2


class Prefetch(Same):
    """The elements, of which a thread keeps up to `size` ready; -1 leaves the number open. The
    thread is started when elements are seen to take their time. Where they take less than handing
    them over would, they are computed as they are asked for, from then on or again."""

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
        # Where the element is on its way to another device already: it is sent once more from
        # there.
        if type(element) is Sent and element.device is not self._device:
            element = element.received()
        return on_host(element) if self._device.is_host else sent(element, self._device)


def ahead(upstream: Elements[object], size: int) -> Elements[object]:
    """The elements of a pass, of which up to `size` more are ready; -1 leaves the number open."""
    return _ahead(upstream, _USUAL if size < 0 else size) if size else upstream


def _ahead(upstream: Elements[object], size: int) -> Elements[object]:
    """The elements, computed by a thread while they take their time. Without it, one that was sent
    to a device is kept back until the next was sent too: to send them takes no time, and the device
    copies that one while it computes with this one."""
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
        # All arrays of an element at once, by the thread that computed it; who waits is `received`,
        # in the thread that uses it.
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


#: What takes less than this, in seconds, is done at once: to hand it over would take as long.
WORTHWHILE = 300e-6
#: How many times in a row tell that something takes long; that it does not.
_SLOW, _FAST = 3, 16
#: No pass has more threads, whatever is asked for: each has a stack of its own.
_MOST = 256
_working: weakref.WeakSet[Any] = weakref.WeakSet()


class Pace:
    """Whether something takes long again and again. What is slow now and then, such as what is
    done for the first time, does not count."""

    __slots__ = ("_fast", "_slow")

    def __init__(self) -> None:
        self._slow = self._fast = 0

    # In a row, and not on average: the first calls of a pipeline trace and compile, and one of
    # these would outweigh hundreds of the others.
    def add(self, seconds: float) -> None:
        if seconds > WORTHWHILE:
            self._slow += 1
            self._fast = 0
        else:
            self._slow = 0
            self._fast += 1

    @property
    def slow(self) -> bool:
        return self._slow >= _SLOW

    @property
    def fast(self) -> bool:
        return self._fast >= _FAST


class Job:
    """A call that another thread makes."""

    __slots__ = ("_done", "_error", "_result")

    def __init__(self) -> None:
        self._done = threading.Event()
        self._result: Any = None
        self._error: Exception | None = None

    def run(self, call: Callable[[], object]) -> None:
        try:
            self._result = call()
        except Exception as error:
            self._error = error
        self._done.set()

    def result(self) -> Any:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Workers:
    """Threads that take jobs from a queue."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._count = count
        for _ in range(count):
            threading.Thread(target=_work, args=(self._jobs,), daemon=True,
                             name="gtape.data").start()

    def start(self, call: Callable[[], object]) -> Job:
        job = Job()
        self._jobs.put((job, call))
        return job

    def stop(self) -> None:
        # One end for each thread, behind the jobs that are queued: none is interrupted in the
        # middle.
        for _ in range(self._count):
            self._jobs.put(None)


def _work(jobs: SimpleQueue[Any]) -> None:
    # The current device is one of each thread, and a new thread has the default one.
    with on(CPU):
        while (given := jobs.get()) is not None:
            given[0].run(given[1])
            del given  # or the thread would hold the element until its next job comes


def in_threads(call: Any, upstream: Elements[object], threads: int, ordered: bool,
               ) -> Elements[object]:
    """call(element) for the elements, in order, or as they are done; by threads (-1: as many as
    there are processors) once it shows that it takes long."""
    pace = Pace()
    number = 0
    for element in upstream:
        start = perf_counter()
        try:
            result = call(element)
        except Exception as error:
            raise failed(error, call.what, number) from error
        pace.add(perf_counter() - start)
        yield result
        number += 1
        # Only here, between two elements: those before were given in order, and the threads go on
        # with the next one.
        if pace.slow and threads != 1:
            break
    else:
        return
    count = min(threads, _MOST) if threads > 0 else os.cpu_count() or 1
    yield from _in_threads(call, upstream, count, number, ordered)


def _in_threads(call: Any, upstream: Elements[object], threads: int, number: int, ordered: bool,
                ) -> Elements[object]:
    workers = Workers(threads)
    waiting: deque[tuple[int, Job]] = deque()
    ended: Exception | None = None
    try:
        while True:
            # Twice as many as there are threads: one that is done finds its next job waiting.
            while ended is None and len(waiting) < 2 * threads:
                try:
                    element = next(upstream)
                except Exception as error:  # the end, or what is to be said after what is waiting
                    ended = error
                    break
                waiting.append((number, workers.start(call.job(element))))
                number += 1
            if not waiting:
                break
            if not ordered:
                done = (i for i, (_, job) in enumerate(waiting) if job._done.is_set())
                waiting.rotate(-next(done, 0))
            at, job = waiting.popleft()
            try:
                result = job.result()
            except Exception as error:
                raise failed(error, call.what, at) from error
            yield result
    finally:
        # Also where the pass is given up half-way: the generator is closed, and the threads would
        # wait for ever.
        workers.stop()
    if ended is not None and not isinstance(ended, StopIteration):
        raise ended


class HandedBack(Exception):
    """A thread has computed its last element, but the pass goes on."""


class Ahead:
    """A thread that computes the next elements of a pass, until `size` of them are ready: those in
    `ready`, which come first, among them."""

    def __init__(self, upstream: Elements[object], size: int, ready: Sequence[Sent] = ()) -> None:
        self.stopped = False
        self.ready: SimpleQueue[Any] = SimpleQueue()
        # Counts what may still be computed, so that the queue itself needs no limit and putting
        # never waits.
        self.room = threading.Semaphore(size - len(ready))
        for element in ready:
            self.ready.put((element, None))
        self.thread = threading.Thread(target=self._run, args=(upstream,), daemon=True,
                                       name="gtape.data")
        _working.add(self)
        self.thread.start()

    def _run(self, upstream: Elements[object]) -> None:
        error: Exception
        with on(CPU):
            try:
                pace = Pace()
                while not pace.fast:
                    self.room.acquire()
                    # `stop` makes room so that a thread that waits for some sees this.
                    if self.stopped:
                        return
                    start = perf_counter()
                    element = next(upstream)
                    pace.add(perf_counter() - start)
                    self.ready.put((element, None))
                # Fast again: handing elements over would cost more than computing them.
                error = HandedBack()
            except Exception as found:
                error = found
        self.ready.put((None, error))

    def elements(self) -> Elements[object]:
        """What the thread computes. Raises HandedBack: the next ones take no time: there is nothing
        to be gained by a thread."""
        try:
            while True:
                element, error = self.ready.get()
                if error is not None:
                    if not isinstance(error, StopIteration):
                        raise error
                    return
                self.room.release()
                yield element
        finally:
            self.stop()

    def stop(self) -> None:
        self.stopped = True
        self.room.release()


@atexit.register
def _stop() -> None:
    """Let the threads end before Python does, if they can soon."""
    # A daemon thread that runs while Python ends may call into NumPy or CuPy as they are torn down,
    # which can crash; one that hangs is left behind after a moment.
    threads = list(_working)
    for ahead in threads:
        ahead.stop()
    for ahead in threads:
        ahead.thread.join(0.2)

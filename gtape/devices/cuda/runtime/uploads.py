"""Uploads: copies of host memory to a GPU that it makes by itself, beside the kernels it runs.

A GPU reads by itself from page-locked memory alone, and beside kernels only on another stream than
theirs. So the bytes pass through buffers of such memory, on a stream that nothing else uses.

What is copied lies in memory that belongs to that stream: CuPy's pool gives it to the next copy as
soon as nobody holds it, whatever other streams still do with it. So it is never given away. Whoever
asks for it gets a copy of it, made within the GPU, in memory of the asker's own stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from gtape.core.locks import lock

#: How many buffers there are for a GPU, and the bytes of each.
BUFFERS, SIZE = 4, 1 << 22
#: Copies begin at multiples of so many bytes.
_ALIGNMENT = 256


class Uploads:
    """The copies to one GPU. Threads may share it.

    Args:
        cupy: the module.
        scope: inside, that GPU is CuPy's current one.
    """

    def __init__(self, cupy: ModuleType, scope: Callable[[], AbstractContextManager[object]],
                 ) -> None:
        self._cupy = cupy
        self._scope = scope
        self._staging: Staging | None = None
        self._lock = lock()

    def send(self, arrays: Sequence[np.ndarray]) -> Callable[[], list[Any]]:
        """Begin to copy host arrays, which may change as soon as this returns.

        Returns:
            A function, to be called once, that gives the copies to the stream that is current where
            it is called. That stream waits for them; the thread does not.
        """
        with self._lock, self._scope():
            if self._staging is None:
                self._staging = Staging(self._cupy)
            with self._staging.stream:
                sent = [self._sent(array, self._staging) for array in arrays]
            return partial(self._received, sent, self._staging.stream, self._staging.end())

    def _sent(self, array: np.ndarray, staging: Staging) -> Any:
        copy = self._cupy.empty(array.shape, array.dtype)
        if array.size:
            staging.copy(_bytes(np.ascontiguousarray(array)), _bytes(copy))
        return copy

    def _received(self, sent: list[Any], stream: Any, copied: object) -> list[object]:
        with self._scope():
            current = self._cupy.cuda.get_current_stream()
            # On the GPU: the thread goes on, and kernels of this stream run when the bytes are
            # there.
            current.wait_event(copied)
            try:
                return [array.copy() for array in sent]
            finally:
                # The pool gets this memory back only after its stream waits for those who read it.
                stream.wait_event(current.record(_event(self._cupy)))
                sent.clear()


class Staging:
    """Page-locked buffers that are filled in turn, and the stream of the copies from them. A buffer
    is filled again when the copies from it are done; who fills it waits for that."""

    def __init__(self, cupy: ModuleType) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._cupy = cupy
        # Four of 4 MiB: while one is copied the next is filled, and a batch larger than all of them
        # goes through in turns. Page-locked memory is taken from the whole system.
        self._buffers = deque(Buffer(cupy) for _ in range(BUFFERS))
        #: How many bytes of the first are in use.
        self._used = 0

    def copy(self, source: np.ndarray, target: Any) -> None:
        """Begin to copy bytes of the host to bytes of the GPU."""
        done = 0
        while done < source.size:
            room = self._room()
            size = min(room.size, source.size - done)
            room[:size] = source[done:done + size]
            target[done:done + size].set(room[:size], self.stream)
            self._used += -(-size // _ALIGNMENT) * _ALIGNMENT
            done += size

    def end(self) -> Any:
        """The event of all that was begun; what follows begins in another buffer."""
        if self._used:
            self._turn()
        return self.stream.record(_event(self._cupy))

    def _room(self) -> np.ndarray:
        """What is left of the first buffer, or all of the next."""
        if self._used == SIZE:
            self._turn()
        if not self._used:
            self._buffers[0].copied.synchronize()
        return self._buffers[0].memory[self._used:]

    def _turn(self) -> None:
        self.stream.record(self._buffers[0].copied)
        self._buffers.rotate(-1)
        self._used = 0


class Buffer:
    """Page-locked memory, and the event that comes after the copies from it."""

    __slots__ = ("copied", "memory")

    def __init__(self, cupy: ModuleType) -> None:
        self.memory = np.frombuffer(cupy.cuda.alloc_pinned_memory(SIZE), np.uint8, SIZE)
        self.copied = _event(cupy)


def _event(cupy: ModuleType) -> Any:
    """An event for which a thread sleeps, and does not spin."""
    return cupy.cuda.Event(block=True, disable_timing=True)


def _bytes(array: Any) -> Any:
    """The memory of an array without gaps."""
    return array.reshape(-1).view(np.uint8)

"""Streams of the fake CuPy: what may happen late happens as late as it can.

Functions compute at once. A copy from page-locked memory, on a stream of its own, is made when
somebody waits for it; its target holds garbage until then. Where two streams use the same memory
and neither waits for the other, it is said in `races`.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import Any

import numpy as np

_GARBAGE = 0xA5
_thread = threading.local()
_lock = threading.RLock()
_numbers = itertools.count(1)
#: What a GPU might have done in another order than is right.
races: list[str] = []


class Stream:
    """Work that is done in order; that of other streams is done before or after, unless waited for.
    """

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0 if null else next(_numbers)
        #: How much was given to it, and how much of each other stream comes before what is next.
        self.given = 0
        self.after: dict[Stream, int] = {}
        self._late: deque[tuple[int, np.ndarray, np.ndarray]] = deque()

    def __enter__(self) -> Stream:
        _thread.stack = (*getattr(_thread, "stack", ()), self)
        return self

    def __exit__(self, *exc: object) -> None:
        _thread.stack = _thread.stack[:-1]

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copy host memory: page-locked memory late, unless this is the null stream."""
        with _lock:
            self.given += 1
            if self is Stream.null or not _page_locked(source):
                target[...] = source
                return
            target.reshape(-1).view(np.uint8)[...] = _GARBAGE
            self._late.append((self.given, source, target))

    def run(self, until: int) -> None:
        """Make the copies up to that one."""
        with _lock:
            while self._late and self._late[0][0] <= until:
                _, source, target = self._late.popleft()
                target[...] = source

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.at = (self, self.given, dict(self.after))
        return event

    def wait_event(self, event: Event) -> None:
        event.synchronize()
        if event.at is not None:
            stream, given, after = event.at
            for other, n in {**after, stream: given}.items():
                self.after[other] = max(self.after.get(other, 0), n)

    def synchronize(self) -> None:
        self.run(self.given)


class Event:
    """A place in the work of a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False,
                 interprocess: bool = False) -> None:
        self.at: tuple[Stream, int, dict[Stream, int]] | None = None

    def synchronize(self) -> None:
        if self.at is not None:
            self.at[0].run(self.at[1])


class PinnedMemory(bytearray):
    """Page-locked memory."""


def _page_locked(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview) and isinstance(array.obj, PinnedMemory)


def current() -> Stream:
    """The stream on which functions compute in this thread."""
    stack = getattr(_thread, "stack", ())
    return stack[-1] if stack else Stream.null


class Memory:
    """What the streams do with the memory of an array. The stream on which it was made may have
    used it for something else before, and may do so again."""

    def __init__(self) -> None:
        self._home = current()
        self._home.given += 1
        self._made = self._home.given
        self._used: dict[Stream, int] = {}

    def use(self, stream: Stream | None = None) -> None:
        """`stream`, or the current one, reads or writes it."""
        stream = stream or current()
        if stream is not self._home:
            if stream.after.get(self._home, 0) < self._made:
                races.append(f"stream {stream.ptr} does not wait for memory of {self._home.ptr}")
            stream.given += 1
            self._used[stream] = stream.given

    def free(self) -> None:
        for stream, given in self._used.items():
            if self._home.after.get(stream, 0) < given:
                races.append(f"stream {self._home.ptr} frees memory that {stream.ptr} uses")


Stream.null = Stream(null=True)

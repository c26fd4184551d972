"""Forked processes for tests, and threads that work beside them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def child(work: Callable[[], bool], seconds: int = 20) -> bool:
    """Whether `work` gives True in a forked process, within that time."""
    number = os.fork()
    if number == 0:
        signal.alarm(seconds)
        good = False
        try:
            good = work()
        finally:
            os._exit(0 if good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[None]:
    """Another thread that does `work` again and again, at least once before the block."""
    stop, begun = threading.Event(), threading.Event()

    def again() -> None:
        while not stop.is_set():
            work()
            begun.set()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        begun.wait()
        yield
    finally:
        stop.set()
        thread.join()

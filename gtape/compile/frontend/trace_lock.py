"""One thread at a time traces a function."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_here = threading.local()
#: Seconds after which a thread no longer waits for another that traces. The Python code that is
#: traced may itself wait for this thread, which nobody can see; most traces are made much sooner.
PATIENCE = 10.0


@contextmanager
def alone(lock: Any) -> Iterator[None]:
    """Hold the lock of a function while it is traced.

    A thread that traces one function already does not wait for another: two threads could wait for
    each other. It then traces beside the other thread, which is wasteful and right. A thread that
    has waited for long does so too.
    """
    depth = getattr(_here, "depth", 0)
    held = lock.acquire(timeout=0 if depth else PATIENCE)
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth
        if held:
            lock.release()

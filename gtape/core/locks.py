"""Locks that are free in a forked process, and how long a trace waits for one.

What another thread held when the process forked would stay held in the child, where that thread is
not.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A lock that the thread that has it may take again."""
    # Reentrant: a finalizer or a signal handler may run inside, and call what takes it again.
    new = threading.RLock()
    _locks.add(new)
    return new


def _renew() -> None:
    for each in _locks:
        if not each._is_owned():  # the thread that forked goes on, and gives back what it has
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


_here = threading.local()
#: Seconds after which a thread no longer waits for another that traces. The Python code that is
#: traced may itself wait for this thread, which nobody can see; most traces are made much sooner.
PATIENCE = 10.0


@contextmanager
def trace_lock(lock: Any) -> Iterator[None]:
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

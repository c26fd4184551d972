"""Locks that are free in a forked process.

What another thread held when the process forked would stay held in the child, where that thread is
not.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A lock that the thread that has it may take again."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _renew() -> None:
    for each in _locks:
        if not each._is_owned():  # the thread that forked goes on, and gives back what it has
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

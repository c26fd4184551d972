"""Arithmetic without NumPy's warnings: 1/0 is inf and log(-1) is nan, silently, as on a GPU.

NumPy keeps its error state in a context variable. Setting that variable costs 0.1 us, entering
`np.errstate` 0.7 us, as much as three small ops. The variable is private to NumPy, so `np.errstate`
stays as the way for a NumPy that has it no more.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


def _fast() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    from numpy._core import umath

    variable: Any = umath._extobj_contextvar
    silent = umath._make_extobj(all="ignore")
    # Tried once, here: a NumPy in which it is something else takes the plain way.
    variable.reset(variable.set(silent))
    put = variable.set
    return (lambda: put(silent)), variable.reset


def _plain() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    def enter() -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    return enter, lambda state: state.__exit__(None, None, None)


try:
    ignore, restore = _fast()
except (ImportError, AttributeError, TypeError):
    ignore, restore = _plain()


class _IgnoredContext(threading.local):
    """`ignored_context.run(function, *arrays)` calls NumPy with an error state that ignores all.

    Entering a context that stands ready costs 0.05 us, half of setting and resetting. A context
    can be entered once at a time, so each thread has one. A signal handler or finalizer that
    interrupts what runs inside finds it entered: `run` is then a RuntimeError, and `call` the way.
    """

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(ignore)
        self.run = context.run

    def call(self, function: Callable[..., Any], *args: Any, **options: object) -> Any:
        """`run`, also where this thread's context is entered already."""
        try:
            return self.run(function, *args, **options)
        except RuntimeError:
            state = ignore()
            try:
                return function(*args, **options)
            finally:
                restore(state)


ignored_context = _IgnoredContext()

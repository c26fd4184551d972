"""Stops at every line of chosen files: an interrupt, or the death of the process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any


@contextmanager
def at_line(number: int, action: Callable[[], None], *modules: ModuleType) -> Iterator[list[int]]:
    """Do `action` before the line that these modules run as the `number`-th of the block, counted
    from 0. It gives a list, whose length is that of the lines that were run before."""
    files = {module.__file__ for module in modules}
    lines: list[int] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            if len(lines) == number:
                sys.settrace(None)
                lines.append(frame.f_lineno)
                action()
            else:
                lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def die() -> None:
    """What kill -9 does, or the kernel where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(work: Callable[[], None]) -> bool:
    """Whether `work`, in a forked process, is killed before its end."""
    number = os.fork()
    if number == 0:
        try:
            work()
        finally:
            os._exit(0)
    status = os.waitpid(number, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

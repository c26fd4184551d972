"""Ctrl-C between steps, never within one, so that what is saved fits together."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupts:
    """Inside the block, the first Ctrl-C sets `asked`; the next one interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

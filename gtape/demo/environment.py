"""What a demonstration needs of the machine: a package, a device, a folder, and Ctrl-C."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType

import gtape as tf


class DemoError(RuntimeError):
    """A demonstration cannot run; the message says what to do about it."""


def require(module: str, purpose: str) -> None:
    """Raise DemoError with the install command when `module` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise DemoError(f'{purpose}, which is not installed; run: pip install "gtape[demo]"')


def scope(device: str | None) -> AbstractContextManager[object]:
    """`tf.device(device)`; None leaves the choice to gtape."""
    return nullcontext() if device is None else tf.device(device)


def require_device(device: str | None) -> None:
    """Raise DemoError when no tensor can be made on the device."""
    try:
        with scope(device):
            tf.zeros(1)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        asked = "the default device" if device is None else f"--device {device}"
        raise DemoError(f"{asked} cannot be used: {error}\n"
                        f"python -m gtape info lists the devices") from error


def writable_folder(folder: Path) -> Path:
    """Make `folder` if it is missing.

    Raises:
        DemoError: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"--out must name a folder that can be made; {folder}: "
                        f"{error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DemoError(f"--out must name a folder that can be written to; {folder} cannot")
    return folder


class Interrupts:
    """Ctrl-C between steps, never within one, so that what is saved fits together.

    Inside the block, the first Ctrl-C sets `asked`; the next one interrupts as usual.
    """

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

"""The device that a demonstration was asked to run on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import gtape as tf
from gtape.demo.errors import DemoError


def scope(device: str | None) -> AbstractContextManager[Any]:
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

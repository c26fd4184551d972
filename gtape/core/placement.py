"""Which device new tensors go to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import wraps
from typing import Any

from gtape.core.device import Device
from gtape.core.installed import installed

_scoped: ContextVar[Device | None] = ContextVar("gtape.device", default=None)
_default: list[Device] = []


def default_device() -> Device:
    """Where new tensors go outside any `tf.device` block."""
    if not _default:
        _default.append(installed.find_default_device())
    return _default[0]


def forget_default() -> None:
    """Probe again at the next use: the environment changed."""
    _default.clear()


def current_device() -> Device:
    """Where a new tensor goes now."""
    return _scoped.get() or default_device()


class on(ContextDecorator):
    """New tensors go to `device` inside the block, or the function that this decorates."""

    __slots__ = ("_device", "_tokens")

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._tokens: list[object] = []

    def _recreate_cm(self) -> on:
        return on(self._device)  # for each call, which other threads may make too

    def __enter__(self) -> on:
        self._tokens.append(_scoped.set(self._device))
        return self

    def __exit__(self, *exc: object) -> None:
        _scoped.reset(self._tokens.pop())  # type: ignore[arg-type]


def at_home(function: Callable[..., object]) -> Callable[..., Any]:
    """Decorator for functions that compute with bare arrays outside a primitive.

    They do so on the device of their first tensor, or where their first argument becomes one.
    """
    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        types = (getattr(value, "_t", None) for value in (*args, *kwargs.values()))
        home = next((t.device for t in types if t is not None), None) or current_device()
        with home.scope():
            return function(*args, **kwargs)

    return run

"""The error of a demonstration that cannot run."""

from __future__ import annotations

import importlib.util


class DemoError(RuntimeError):
    """A demonstration cannot run; the message says what to do about it."""


def require(module: str, purpose: str) -> None:
    """Raise DemoError with the install command when `module` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise DemoError(f'{purpose}, which is not installed; run: pip install "gtape[demo]"')

"""What gtape changes in Keras' modules, each once it has run."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

_AMENDMENTS: dict[str, Callable[[ModuleType], None]] = {}


def apply(module: ModuleType) -> None:
    """Amend `module`, if gtape has something to say in it."""
    amend = _AMENDMENTS.get(module.__name__)
    if amend is not None:
        amend(module)

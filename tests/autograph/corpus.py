"""The functions of the corpus: each with the arguments that it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CORPUS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = []
NUMBERS = [(n,) for n in range(-2, 9)]


def on(*calls: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Put a function into the corpus."""
    def keep(fn: Any) -> Any:
        CORPUS.append((fn, list(calls)))
        return fn

    return keep

"""What `fit` and `evaluate` print: one line for an epoch, rewritten while it runs."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """`verbose` 0 prints nothing, 1 (and 'auto') rewrites the line in a terminal, 2 ends it."""

    def __init__(self, verbose: Any, epoch: int | None, epochs: int | None) -> None:
        self._on = verbose not in (0, "0", False)
        self._live = self._on and verbose in (1, "auto") and sys.stdout.isatty()
        self._head = "" if epoch is None else f"epoch {epoch + 1}/{epochs}  "
        self._last = 0.0

    def step(self, step: int, logs: dict[str, Any]) -> None:
        """After a batch: at most ten times a second."""
        now = time.monotonic()
        if self._live and now - self._last > 0.1:
            self._last = now
            print(f"\r{self._head}batch {step + 1}  {_shown(logs)}", end="", flush=True)

    def line(self, logs: dict[str, Any]) -> None:
        """At the end."""
        if self._on:
            start = "\r\033[K" if self._live else ""
            print(f"{start}{self._head}{_shown(logs)}", flush=True)


def _shown(logs: dict[str, Any]) -> str:
    return "  ".join(f"{name} {float(value):.4g}" for name, value in logs.items()
                     if not getattr(value, "shape", ()))

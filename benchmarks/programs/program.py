"""What a timed program is, and the check that comes before the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class WrongResult(AssertionError):
    """A program's numbers differ from the float64 reference, so its time means nothing."""


@dataclass(frozen=True)
class Program:
    """`run()` does the work once; `check()` raises WrongResult if the work is done wrongly.

    `first()`, where there is one, comes before the check: the seconds that the first call takes.
    """

    run: Callable[[], Any]
    check: Callable[[], None]
    first: Callable[[], float] | None = None


def to_numpy(value: Any) -> np.ndarray:
    """The array behind any peer's result; torch gives its own up only when it is detached."""
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def require_close(actual: Any, expected: Any, what: str, rtol: float = 1e-4) -> None:
    """Raise WrongResult unless |actual - expected| <= rtol (|expected| + max |expected|)."""
    actual = to_numpy(actual).astype(np.float64)
    expected = np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        raise WrongResult(f"{what}: shape {actual.shape}, float64 NumPy has {expected.shape}")
    allowed = rtol * (np.abs(expected) + np.max(np.abs(expected)))
    error = np.abs(actual - expected)
    if not np.all(error <= allowed):
        raise WrongResult(f"{what}: differs from float64 NumPy by up to {np.nanmax(error):.3g}")

"""Limits on gradients: by value, by the norm of each, by the norm of all."""

from __future__ import annotations

from typing import Any

import numpy as np


def square_sum(xp: Any, g: Any) -> Any:
    wide = g.astype(np.float32) if g.dtype.itemsize < 4 else g
    return xp.sum(wide * wide)


def clipped_by_norm(xp: Any, g: Any, limit: float) -> Any:
    """g limit / max(‖g‖, limit)."""
    norm = xp.sqrt(square_sum(xp, g))
    return g * (limit / xp.maximum(norm, limit)).astype(g.dtype)


def clipped_by_value(xp: Any, g: Any, limit: float) -> Any:
    """g held within ±limit."""
    return xp.clip(g, g.dtype.type(-limit), g.dtype.type(limit))


def clipped_by_global_norm(xps: list[Any], gradients: list[Any], limit: float) -> list[Any]:
    """All gradients scaled alike, so that the norm of all together is at most `limit`.

    A norm that is not finite makes every gradient nan.
    """
    norm = float(np.sqrt(sum(float(square_sum(xp, g)) for xp, g in zip(xps, gradients))))
    scale = limit / max(norm, limit) if np.isfinite(norm) else float("nan")
    return [g * g.dtype.type(scale) for g in gradients]

"""Overlapping frames of a signal, and their sum: adjoints of each other."""

from __future__ import annotations

from typing import Any


def cut(xp: Any, x: Any, length: int, step: int, count: int) -> Any:
    """y[…, i, j] = x[…, i step + j] for i < count and j < length."""
    if not count or not length:
        return xp.zeros((*x.shape[:-1], count, length), x.dtype)
    places = xp.arange(count)[:, None] * step + xp.arange(length)
    return x[..., places]


def overlap(xp: Any, frames: Any, step: int, size: int) -> Any:
    """y[…, i step + j] = Σ frames[…, i, j], of length `size`.

    Frames are cut into pieces as long as the step; pieces of one number do not overlap, so each
    number takes one addition.
    """
    *batch, count, length = frames.shape
    made = xp.zeros((*batch, max(size, (count - 1) * step + length, 0)), frames.dtype)
    if not count or not length:
        return made[..., :size]
    for start in range(0, length, step):
        piece = frames[..., start:start + step]
        width = piece.shape[-1]
        stop = start + count * step
        missing = stop - made.shape[-1]
        if missing > 0:
            blank = xp.zeros((*batch, missing), frames.dtype)
            made = xp.concatenate([made, blank], axis=-1)
        rows = made[..., start:stop].reshape(*batch, count, step)
        rows[..., :width] += piece
        made[..., start:stop] = rows.reshape(*batch, count * step)
    return made[..., :size]

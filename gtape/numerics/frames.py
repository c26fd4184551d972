"""Overlapping frames of a signal, and their sum: adjoints of each other."""

from __future__ import annotations

from types import ModuleType

from .precision import Array


def cut(xp: ModuleType, x: Array, length: int, step: int, count: int) -> Array:
    """y[…, i, j] = x[…, i step + j] for i < count and j < length."""
    if not count or not length:
        return xp.zeros((*x.shape[:-1], count, length), x.dtype)
    places = xp.arange(count)[:, None] * step + xp.arange(length)
    return x[..., places]


def overlap(xp: ModuleType, frames: Array, step: int, size: int) -> Array:
    """y[…, i step + j] = Σ frames[…, i, j], of length `size`.

    Frames are cut into pieces as long as the step; pieces of one number do not overlap, so each
    number takes one addition.
    """
    *batch, count, length = frames.shape
    signal = xp.zeros((*batch, max(size, (count - 1) * step + length, 0)), frames.dtype)
    if not count or not length:
        return signal[..., :size]
    for start in range(0, length, step):
        piece = frames[..., start:start + step]
        width = piece.shape[-1]
        stop = start + count * step
        missing = stop - signal.shape[-1]
        if missing > 0:
            blank = xp.zeros((*batch, missing), frames.dtype)
            signal = xp.concatenate([signal, blank], axis=-1)
        rows = signal[..., start:stop].reshape(*batch, count, step)
        rows[..., :width] += piece
        signal[..., start:stop] = rows.reshape(*batch, count * step)
    return signal[..., :size]

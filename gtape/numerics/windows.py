"""Sliding windows over 1 to 3 spatial dimensions, channels last: [N, *spatial, C]; and overlapping
frames of a signal.

`patches` and `fold` are adjoint: <patches(x), g> = <x, fold(g)>.  `pad` and `crop` are too, and
`cut` and `overlap`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from types import ModuleType

from .arrays import Array

Sizes = Sequence[int]
Pads = tuple[tuple[int, int], ...]


def padding(kind: str | Sequence[Sequence[int]], in_sizes: Sizes, sizes: Sizes, strides: Sizes,
            dilations: Sizes) -> Pads:
    """Cells to add before and after each spatial dimension. 'VALID' adds none; 'SAME' makes the
    output ceil(in / stride), with the odd cell at the end; a sequence of (before, after) pairs, one
    per spatial dimension, is taken as it is. Raises ValueError for any other `kind`."""
    if not isinstance(kind, str):
        return _explicit_pads(kind, len(in_sizes))
    if kind.upper() == "VALID":
        return ((0, 0),) * len(in_sizes)
    if kind.upper() != "SAME":
        raise ValueError(f"padding must be 'SAME', 'VALID' or a list of (before, after) pairs, one "
                         f"per spatial dimension; got {kind!r}")
    pads = []
    for length, size, stride, dilation in zip(in_sizes, sizes, strides, dilations, strict=True):
        out = -(-length // stride)
        total = max((out - 1) * stride + span(size, dilation) - length, 0)
        pads.append((total // 2, total - total // 2))
    return tuple(pads)


def _explicit_pads(pairs: Sequence[Sequence[int]], rank: int) -> Pads:
    pads = tuple((int(before), int(after)) for before, after in pairs)
    if len(pads) != rank or any(n < 0 for pair in pads for n in pair):
        raise ValueError(f"explicit padding must hold {rank} (before, after) pairs of numbers "
                         f">= 0, one per spatial dimension; got {list(pads)}")
    return pads


def span(size: int, dilation: int) -> int:
    """Cells from the first to the last one that a window of `size` cells touches."""
    return (size - 1) * dilation + 1


def out_sizes(in_sizes: Sizes, sizes: Sizes, strides: Sizes, dilations: Sizes,
              pads: Pads) -> tuple[int, ...]:
    """Number of window positions per spatial dimension: (in + pads - span) // stride + 1. Raises
    ValueError where a window is larger than its padded input by more than one stride."""
    outs = []
    for length, size, stride, dilation, pair in zip(in_sizes, sizes, strides, dilations, pads,
                                                    strict=True):
        out = (length + sum(pair) - span(size, dilation)) // stride + 1
        if out < 0:
            raise ValueError(
                f"a window must fit in its padded input: window {tuple(sizes)} with dilations "
                f"{tuple(dilations)} on spatial sizes {tuple(in_sizes)} padded by {pads}; pad "
                f"more (padding='SAME') or use a smaller window")
        outs.append(out)
    return tuple(outs)


def pad(xp: ModuleType, x: Array, pads: Pads, value: float = 0) -> Array:
    """x [N, *spatial, C] with `value` around its spatial dimensions; x itself if none is asked."""
    # The common case copies nothing.
    if not any(before or after for before, after in pads):
        return x
    padded = xp.full(padded_shape(x.shape, pads), value, x.dtype)
    crop(padded, pads)[...] = x
    return padded


def padded_shape(shape: Sizes, pads: Pads) -> tuple[int, ...]:
    """The shape of `pad` of an array of `shape` [N, *spatial, C]."""
    batch, *spatial, channels = shape
    return (batch, *(n + sum(pair) for n, pair in zip(spatial, pads, strict=True)), channels)


def crop(x: Array, pads: Pads) -> Array:
    """The view of x [N, *spatial, C] without its padded cells."""
    inner = zip(x.shape[1:-1], pads, strict=True)
    return x[(slice(None), *(slice(before, n - after) for n, (before, after) in inner))]


def patches(xp: ModuleType, x: Array, size: Sizes, strides: Sizes, dilations: Sizes) -> Array:
    """All windows of x [N, *spatial, C] as a view [N, *out, *size, C] (do not write to it)."""
    outs = out_sizes(x.shape[1:-1], size, strides, dilations, ((0, 0),) * len(size))
    batch, *steps, channel = x.strides
    moves = [step * stride for step, stride in zip(steps, strides, strict=True)]
    reach = [step * dilation for step, dilation in zip(steps, dilations, strict=True)]
    # Overlapping windows as strides: no element is copied until a product needs a matrix.
    return xp.lib.stride_tricks.as_strided(
        x, (x.shape[0], *outs, *size, x.shape[-1]), (batch, *moves, *reach, channel))


def fold(xp: ModuleType, g: Array, shape: Sizes, size: Sizes, strides: Sizes,
         dilations: Sizes) -> Array:
    """Overlap-add of windows g [N, *out, *size, C] into an array of `shape` [N, *spatial, C]."""
    rank = len(size)
    total = xp.zeros(shape, g.dtype)
    for cell, where in cells(size, g.shape[1 : 1 + rank], strides, dilations):
        total[where] += g[(slice(None),) * (1 + rank) + cell]
    return total


def cells(size: Sizes, outs: Sizes, strides: Sizes,
          dilations: Sizes) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each cell of a window, row-major: its position, and the index that selects from
    [N, *spatial, C] what every window sees in that cell, as [N, *out, C]."""
    for cell in product(*map(range, size)):
        where = [slice(None)]
        for k, out, stride, dilation in zip(cell, outs, strides, dilations, strict=True):
            first = k * dilation
            where.append(slice(first, first + max(out - 1, 0) * stride + (out > 0), stride))
        yield cell, tuple(where)


def cut(xp: ModuleType, x: Array, length: int, step: int, count: int) -> Array:
    """y[…, i, j] = x[…, i step + j] for i < count and j < length."""
    if not count or not length:
        return xp.zeros((*x.shape[:-1], count, length), x.dtype)
    places = xp.arange(count)[:, None] * step + xp.arange(length)
    return x[..., places]


def overlap(xp: ModuleType, frames: Array, step: int, size: int) -> Array:
    """y[…, i step + j] = Σ frames[…, i, j], of length `size`. Frames are cut into pieces as long as
    the step; pieces of one number do not overlap, so each number takes one addition."""
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

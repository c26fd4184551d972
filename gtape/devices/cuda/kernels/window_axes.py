"""The spatial axes of pooling and convolution as kernels take them: always three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gtape.numerics.windows import Pads, out_sizes

Sizes = Sequence[int]


class Axes(NamedTuple):
    """Three spatial axes, the missing ones first, of size 1."""

    ins: tuple[int, ...]
    outs: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The arguments of a kernel, in its order."""
        return tuple(n for axes in self for n in axes)


def axes(ins: Sizes, size: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> Axes | None:
    """The axes of windows over `ins`; None where an index within one does not fit 32 bits."""
    outs = out_sizes(ins, size, strides, dilations, pads)
    windows = Axes(*(_three(part, fill) for part, fill in (
        (ins, 1), (outs, 1), (size, 1), (strides, 1), (dilations, 1),
        ([before for before, _ in pads], 0))))
    reach = max(n + sum(pair) for n, pair in zip(ins, pads)) if ins else 0
    reach = max(reach, *windows.strides, *windows.dilations, *windows.size)
    return windows if reach < 1 << 30 else None


def _three(values: Sizes, fill: int) -> tuple[int, ...]:
    return (fill,) * (3 - len(values)) + tuple(int(v) for v in values)

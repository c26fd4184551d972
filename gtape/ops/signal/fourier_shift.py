"""fftshift and its inverse: the zero frequency in the middle, and back."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert
from gtape.core.spec import normal_axes
from gtape.core.tensor import Tensor
from gtape.ops.arguments import axes_of


def _moved(name: str, x: Any, axes: Any, extra: int) -> Tensor:
    from gtape.ops.shape.packing import concat_

    made = convert(x)
    for axis in normal_axes(name, axes_of(axes), made.ndim):
        n = made.spec.shape[axis]
        cut = n - (n + extra) // 2
        head = (slice(None),) * axis
        if n > 1:
            made = concat_(made[(*head, slice(cut, None))], made[(*head, slice(0, cut))],
                           axis=axis)
    return made


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """`x` with the zero frequency, first along each of `axes`, moved to the middle.

    Raises:
        InvalidArgumentError: no such axis.
    """
    return _moved("fftshift", x, axes, 0)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _moved("ifftshift", x, axes, 1)

"""Root mean square normalisation over the last axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gtape.devices.cuda.kernels.row_norms import RowNorm
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

_NORM = RowNorm("rms_norm", 1)


def rms_norm(gpu: Executor, x: object, scale: Array, eps: float) -> tuple[Any, Any]:
    """y = x f · scale, with f = 1 / √(mean x² + eps) of each row.

    Zhang & Sennrich 2019, arXiv:1910.07467.

    Args:
        gpu: where to run.
        x: [..., cols] of a float dtype.
        scale: [cols] of x's dtype.
        eps: added to the mean square.

    Returns:
        y of x's shape and dtype; f [...], float64 for float64 and else float32.
    """
    y, factor = _NORM.forward(gpu, x, (scale,), eps)
    return y, factor


def rms_norm_backward(gpu: Executor, g: object, x: Any, scale: Array,
                      factor: object) -> tuple[Any, Any]:
    """The gradients of x and scale for the cotangent g of y.

    With n = x f and a = g · scale: dx = f (a - n mean(a n)) in each row, and dscale = Σ g n over
    the rows. The sums are deterministic.
    """
    d_x, d_scale = _NORM.backward(gpu, g, x, scale, (factor,))
    return d_x, d_scale


def instances() -> Iterator[Kernel]:
    """Every kernel that can be launched."""
    return _NORM.instances()

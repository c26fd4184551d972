"""Layer normalisation over the last axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gtape.devices.cuda.kernels.row_norms import RowNorm
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

_NORM = RowNorm("layer_norm", 2)


def layer_norm(gpu: Executor, x: object, scale: object, shift: object, eps: float,
               ) -> tuple[Any, Any, Any]:
    """y = (x - μ) f · scale + shift, with μ and f = 1 / √(σ² + eps) of each row.

    Ba, Kiros & Hinton 2016, arXiv:1607.06450.

    Args:
        gpu: where to run.
        x: [..., cols] of a float dtype.
        scale, shift: [cols] of x's dtype.
        eps: added to the variance.

    Returns:
        y of x's shape and dtype; μ and f [...], float64 for float64 and else float32.
    """
    y, mean, factor = _NORM.forward(gpu, x, (scale, shift), eps)
    return y, mean, factor


def layer_norm_backward(gpu: Executor, g: object, x: Any, scale: Array, mean: Array,
                        factor: object) -> tuple[Any, Any, Any]:
    """The gradients of x, scale and shift for the cotangent g of y.

    With n = (x - μ) f and a = g · scale: dx = f (a - mean a - n mean(a n)) in each row,
    dscale = Σ g n and dshift = Σ g over the rows. The sums are deterministic.
    """
    d_x, d_scale, d_shift = _NORM.backward(gpu, g, x, scale, (mean, factor))
    return d_x, d_scale, d_shift


def instances() -> Iterator[Kernel]:
    """Every kernel that can be launched."""
    return _NORM.instances()

"""Fake quantization: values rounded to a grid, as a quantized model would see them."""

from __future__ import annotations

from typing import Any

from gtape.autodiff.custom_gradient import custom_gradient
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise import scalars as s


@primitive(outputs="bottom top step", nondifferentiable=True)
def nudge_(xp: ArrayModule, low: Array, high: Array, *, levels: int, first: int,
           ) -> tuple[Array, Array, Array]:
    """The range moved so that 0 is on its grid, and the step of the grid."""
    step = (high - low) / (levels - first)
    zero = xp.floor(xp.clip(first - low / step, first, levels) + 0.5).astype(low.dtype)
    return (first - zero) * step, (levels - zero) * step, step


@nudge_.infer
def _(low: Spec, high: Spec, *, levels: int, first: int) -> tuple[Spec, Spec, Spec]:
    if low != high or low.dtype is not float32 or low.ndim > 1:
        raise InvalidArgumentError(f"fake_quant: min and max must be float32 scalars, or vectors "
                                   f"with a number for each channel; got {low}, {high}")
    return low, low, low


def _snap(xp: ArrayModule, x: Array, low: Array, step: Array) -> Array:
    return xp.floor((x - low) * (1 / step) + xp.asarray(0.5, x.dtype)) * step + low


snap = s.scalar_op("snap(x, low, step)", numpy=_snap, names=("x", "low", "step"), domain=None,
                   types="real_float", cuda="floor((x - low) * (1 / step) + 0.5) * step + low",
                   doc="The nearest point low + n step. Not differentiable.",
                   d_x=None, d_low=None, d_step=None)


def _fake_quant(inputs: TensorLike, low: TensorLike, high: TensorLike, num_bits: int,
                narrow_range: bool) -> Tensor:
    x = convert(inputs)
    if x.dtype is not float32:
        raise InvalidArgumentError(f"fake_quant takes float32; got {x.spec}. Use tf.cast")
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"fake_quant: num_bits must lie in [2, 16]; got {num_bits}")
    bounds = [convert(v, float32, x._t.device) for v in (low, high)]
    levels, first = 2 ** int(num_bits) - 1, 1 if narrow_range else 0

    @custom_gradient
    def grid(low: Tensor, high: Tensor) -> Any:
        return nudge_(low, high, levels=levels, first=first), lambda bottom, top, _: (bottom, top)

    bottom, top, step = grid(*bounds)
    return _snapped(s.clip(x, bottom, top), bottom, step)


@custom_gradient
def _snapped(x: Tensor, low: Tensor, step: Tensor) -> Any:
    """`snap`, through which the gradient of x passes straight."""
    return snap(x, low, step), lambda g: (g, None, None)


def fake_quant_with_min_max_args(inputs: TensorLike, min: float = -6, max: float = 6,
                                 num_bits: int = 8, narrow_range: bool = False,
                                 name: str | None = None) -> Tensor:
    """`inputs` on a grid of 2^num_bits points between `min` and `max`, moved so that 0 is on it.

    The gradient passes unchanged between the bounds and is 0 outside (Bengio, Léonard &
    Courville 2013, arXiv:1308.3432; the grid: Jacob et al. 2017, arXiv:1712.05877).

    Raises:
        InvalidArgumentError: not float32, min >= max, or num_bits outside [2, 16].
    """
    if not min < max:
        raise InvalidArgumentError(f"fake_quant: min must be less than max; got {min}, {max}")
    return _fake_quant(inputs, float(min), float(max), num_bits, narrow_range)


def fake_quant_with_min_max_vars(inputs: TensorLike, min: TensorLike, max: TensorLike,
                                 num_bits: int = 8, narrow_range: bool = False,
                                 name: str | None = None) -> Tensor:
    """As `fake_quant_with_min_max_args`; `min` and `max` get the gradients of what they cut off.

    Raises:
        InvalidArgumentError: not float32, or num_bits outside [2, 16].
    """
    return _fake_quant(inputs, min, max, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with vectors of bounds for the channels (last axis).

    Raises:
        InvalidArgumentError: not float32, or the vectors do not have a number for each channel.
    """
    return _fake_quant(inputs, min, max, num_bits, narrow_range)

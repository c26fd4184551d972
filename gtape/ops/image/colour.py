"""Hue, saturation and value of colours (Smith 1978, "Color gamut transform pairs"); YUV and YIQ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_float
from gtape.ops.elementwise.scalars import (
    add,
    clip,
    floor,
    less,
    maximum,
    minimum,
    multiply,
    real_abs,
    scalar_function,
    subtract,
    where,
)
from gtape.ops.image.adjustments import in_float
from gtape.ops.linalg.contraction import tensordot
from gtape.ops.shape.casting import cast
from gtape.ops.shape.packing import stack_, unstack_

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr
from gtape.core.annotations import TensorLike


def _hue(red: Any, green: Any, blue: Any) -> Expr:
    """The angle of a colour on the wheel, in turns of [0, 1); 0 for grey.

    (g - b) / 6d, (b - r) / 6d + 1/3 or (r - g) / 6d + 2/3 as red, green or blue is the largest, d
    being the largest less the smallest.
    """
    top = maximum(red, maximum(green, blue))
    spread = top - minimum(red, minimum(green, blue))
    colourful = spread > 0
    sixth = (1 / 6) / where(colourful, spread, 1)
    second = where(green >= top, sixth * (blue - red) + 1 / 3, sixth * (red - green) + 2 / 3)
    angle = where(red >= top, sixth * (green - blue), second)
    return where(colourful, where(less(angle, 0), angle + 1, angle), 0)


def _saturation(red: Expr, green: Expr, blue: Expr) -> Expr:
    """1 - smallest / largest; 0 where the largest is not positive."""
    top = maximum(red, maximum(green, blue))
    spread = top - minimum(red, minimum(green, blue))
    lit = top > 0
    return where(lit, spread / where(lit, top, 1), 0)


def _lit(share: Expr, saturation: Any, value: Any) -> Expr:
    return ((1 - saturation) + saturation * clip(share, 0, 1)) * value


def _brightest(red: Expr, green: Expr, blue: Expr) -> Expr:
    """The largest of the three."""
    return maximum(red, maximum(green, blue))


def _red(h: Any, s: Expr, v: Expr) -> Expr:
    """v (1 - s + s clip(|6h - 3| - 1, 0, 1))."""
    return _lit(real_abs(h * 6 - 3) - 1, s, v)


def _green(h: Any, s: Expr, v: Expr) -> Expr:
    """v (1 - s + s clip(2 - |6h - 2|, 0, 1))."""
    return _lit(2 - real_abs(h * 6 - 2), s, v)


def _blue(h: Any, s: Expr, v: Expr) -> Expr:
    """v (1 - s + s clip(2 - |6h - 4|, 0, 1))."""
    return _lit(2 - real_abs(h * 6 - 4), s, v)


hue = scalar_function(_hue, types="real_float", name="hue", domain=(0.1, 0.9))
saturation = scalar_function(_saturation, types="real_float", name="saturation", domain=(0.1, 0.9))
brightest = scalar_function(_brightest, types="real_float", name="brightest")
# Each where its share grows or falls steadily: at the corners two slopes are right.
red_of = scalar_function(_red, types="real_float", name="red_of_hsv", domain=(0.2, 0.3))
green_of = scalar_function(_green, types="real_float", name="green_of_hsv", domain=(0.02, 0.15))
blue_of = scalar_function(_blue, types="real_float", name="blue_of_hsv", domain=(0.36, 0.48))


def _channels(name: str, images: TensorLike) -> list[Tensor]:
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3 or not x.dtype.is_floating:
        raise InvalidArgumentError(f"{name} takes floating images with 3 channels in the last "
                                   f"axis; got {x.spec}. tf.image.convert_image_dtype(x, "
                                   f"tf.float32) makes floats of integers")
    return list(unstack_(x, axis=x.ndim - 1))


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value in [0, 1] of red, green and blue in [0, 1], channels last.

    The value is the largest of the three, the saturation 1 - smallest / largest, and the hue the
    angle on the colour wheel, in turns. Differentiable.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    channels = _channels("rgb_to_hsv", images)
    return stack_(hue(*channels), saturation(*channels), brightest(*channels),
                  axis=channels[0].ndim)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value, channels last: `rgb_to_hsv` undone.

    Differentiable, where TensorFlow has no gradient.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    channels = _channels("hsv_to_rgb", images)
    return stack_(red_of(*channels), green_of(*channels), blue_of(*channels),
                  axis=channels[0].ndim)


# ---------------------------------------------------------------- changes of colour
def _coloured(name: str, image: TensorLike, change: Callable[[list[Tensor]], list[Tensor]],
              ) -> Tensor:
    """`image`, changed in hue, saturation and value, and back in its dtype."""
    x = convert(image)
    if x.ndim < 3 or x.spec.shape[-1] != 3:
        raise InvalidArgumentError(f"{name} takes images [..., h, w, 3]; got {x.spec}")

    def changed(floats: Tensor) -> Tensor:
        channels = list(unstack_(floats, axis=floats.ndim - 1))
        parts = change([hue(*channels), saturation(*channels), brightest(*channels)])
        return stack_(red_of(*parts), green_of(*parts), blue_of(*parts), axis=floats.ndim - 1)

    return in_float(x, changed)


def adjust_hue(image: TensorLike, delta: SupportsFloat, name: str | None = None) -> Tensor:
    """Colours turned by `delta` on the colour wheel, in turns; integer images are scaled to [0, 1].

    Raises:
        ValueError: `delta` outside [-1, 1], where it is known while tracing.
        InvalidArgumentError: no images with three channels.
    """
    turn = convert(delta)
    if type(turn) is EagerTensor and not -1 <= as_float(turn, "adjust_hue: delta") <= 1:
        raise ValueError(f"adjust_hue: delta must lie in [-1, 1]; got {shown(delta)}")

    def turned(parts: list[Tensor]) -> list[Tensor]:
        h = add(parts[0], cast(turn, parts[0].dtype))
        return [subtract(h, floor(h)), *parts[1:]]

    return _coloured("adjust_hue", image, turned)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None,
                      ) -> Tensor:
    """Saturation times a factor, at most 1; integer images are scaled to [0, 1].

    Raises:
        InvalidArgumentError: no images with three channels.
    """
    factor = convert(saturation_factor)

    def more(parts: list[Tensor]) -> list[Tensor]:
        grown = multiply(parts[1], cast(factor, parts[1].dtype))
        return [parts[0], clip(grown, 0, 1), parts[2]]

    return _coloured("adjust_saturation", image, more)


# ---------------------------------------------------------------- brightness and two of colour
#: ITU-R BT.601, whose rows are brightness and two differences of colours.
_YUV = np.array([[0.299, 0.587, 0.114], [-0.14714119, -0.28886916, 0.43601035],
                 [0.61497538, -0.51496512, -0.10001026]])
_YIQ = np.array([[0.299, 0.587, 0.114], [0.59590059, -0.27455667, -0.32134392],
                 [0.21153661, -0.52273617, 0.31119955]])
#: TensorFlow has a rounded number in one of the two.
_TO_YIQ = np.where(_YIQ == 0.21153661, 0.2115, _YIQ)


def _mixed(name: str, images: TensorLike, weights: np.ndarray) -> Tensor:
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3 or not x.dtype.is_floating:
        raise InvalidArgumentError(f"{name} takes floating images with 3 channels in the last "
                                   f"axis; got {x.spec}")
    table = convert(weights.T.astype(x.dtype.np_dtype), None, x._t.device)
    return tensordot(x, table, 1)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Brightness and the two colours of PAL, of red, green and blue; channels last.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    return _mixed("rgb_to_yuv", images, _YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """`rgb_to_yuv` undone. Raises as it."""
    return _mixed("yuv_to_rgb", images, np.linalg.inv(_YUV))


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Brightness and the two colours of NTSC, of red, green and blue; channels last.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    return _mixed("rgb_to_yiq", images, _TO_YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """`rgb_to_yiq` undone. Raises as it."""
    return _mixed("yiq_to_rgb", images, np.linalg.inv(_YIQ))

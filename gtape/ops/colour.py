"""Hue, saturation and value of colours, and back (Smith 1978, "Color gamut transform pairs")."""

from __future__ import annotations

from typing import Any

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.packing import stack_, unstack_
from gtape.ops.scalars import clip, less, maximum, minimum, real_abs, where, word


def _hue(red: Any, green: Any, blue: Any) -> Any:
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


def _saturation(red: Any, green: Any, blue: Any) -> Any:
    """1 - smallest / largest; 0 where the largest is not positive."""
    top = maximum(red, maximum(green, blue))
    spread = top - minimum(red, minimum(green, blue))
    lit = top > 0
    return where(lit, spread / where(lit, top, 1), 0)


def _lit(share: Any, saturation: Any, value: Any) -> Any:
    return ((1 - saturation) + saturation * clip(share, 0, 1)) * value


hue = word(_hue, types="real_float", name="hue", domain=(0.1, 0.9))
saturation = word(_saturation, types="real_float", name="saturation", domain=(0.1, 0.9))
brightest = word(lambda red, green, blue: maximum(red, maximum(green, blue)), types="real_float",
                 name="brightest")
red_of = word(lambda h, s, v: _lit(real_abs(h * 6 - 3) - 1, s, v), types="real_float",
              name="red_of_hsv")
green_of = word(lambda h, s, v: _lit(2 - real_abs(h * 6 - 2), s, v), types="real_float",
                name="green_of_hsv")
blue_of = word(lambda h, s, v: _lit(2 - real_abs(h * 6 - 4), s, v), types="real_float",
               name="blue_of_hsv")


def _channels(name: str, images: Any) -> list[Tensor]:
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3 or not x.dtype.is_floating:
        raise InvalidArgumentError(f"{name} takes floating images with 3 channels in the last "
                                   f"axis; got {x.spec}. tf.image.convert_image_dtype(x, "
                                   f"tf.float32) makes floats of integers")
    return list(unstack_(x, axis=x.ndim - 1))


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value in [0, 1] of red, green and blue in [0, 1], channels last.

    The value is the largest of the three, the saturation 1 - smallest / largest, and the hue the
    angle on the colour wheel, in turns. Differentiable.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    channels = _channels("rgb_to_hsv", images)
    return stack_(hue(*channels), saturation(*channels), brightest(*channels),
                  axis=channels[0].ndim)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value, channels last: `rgb_to_hsv` undone.

    Differentiable, where TensorFlow has no gradient.

    Raises:
        InvalidArgumentError: not floating, or the last axis has not three channels.
    """
    channels = _channels("hsv_to_rgb", images)
    return stack_(red_of(*channels), green_of(*channels), blue_of(*channels),
                  axis=channels[0].ndim)

"""Brightness, contrast and colour of images, which are [n, h, w, c] or [h, w, c]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import as_dtype, float32, running_type
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.introspection import is_tensor
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics.sums import total
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.operators import absolute
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
from gtape.ops.linalg.contraction import tensordot
from gtape.ops.reductions.moments import reduce_std
from gtape.ops.reductions.reductions import reduce_mean_, reduce_sum_
from gtape.ops.shape.casting import cast, saturate_cast
from gtape.ops.shape.packing import concat_, stack_, unstack_

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr


def images(name: str, value: TensorLike, ranks: tuple[int, ...] = (3, 4)) -> Tensor:
    """A tensor of images.

    Raises:
        ValueError: it has another rank.
    """
    x = convert(value)
    if x.ndim not in ranks:
        raise ValueError(f"{name} takes images [n, h, w, c] or [h, w, c]; got {x.spec}")
    return x


def convert_image_dtype(image: TensorLike, dtype: object, saturate: bool = False,
                        name: str | None = None) -> Tensor:
    """`image` in another dtype, its values rescaled.

    Floating images have values in [0, 1); those of integer images go up to the largest integer.

    Args:
        saturate: bring values out of range to the nearest bound.
    """
    x, wanted = convert(image), as_dtype(dtype)
    to = saturate_cast if saturate else cast
    if x.dtype is wanted:
        return x
    if x.dtype.is_integer and wanted.is_integer:
        before, after = int(x.dtype.max) + 1, int(wanted.max) + 1
        if before > after:
            return to(s.floordiv(x, before // after), wanted)
        return s.multiply(cast(x, wanted), after // before)
    if x.dtype.is_integer:
        return s.multiply(cast(x, wanted), 1.0 / float(x.dtype.max))
    if wanted.is_integer:
        return to(s.multiply(x, float(wanted.max) + 0.5), wanted)
    return cast(x, wanted)


def in_float(image: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """`change` on a float32 (or float16) form of `image`, and back to its dtype."""
    if image.dtype.name in ("float16", "float32"):
        return change(image)
    return convert_image_dtype(change(convert_image_dtype(image, float32)), image.dtype,
                               saturate=True)


# ---------------------------------------------------------------- brightness and contrast
@primitive(tf_name="AdjustContrastv2")
def adjust_contrast_(xp: ArrayModule, images: Array, contrast_factor: Array) -> Array:
    """y = (x - mean) factor + mean, the mean over height and width. No gradient is registered."""
    wide = images.astype(running_type(images.dtype), copy=False)
    count = images.shape[-3] * images.shape[-2]
    mean = total(wide, (images.ndim - 3, images.ndim - 2), True) / (count or np.nan)
    return ((wide - mean) * contrast_factor + mean).astype(images.dtype)


@adjust_contrast_.infer
def _(images: Spec, contrast_factor: Spec) -> Spec:
    if images.ndim < 3:
        raise InvalidArgumentError(f"adjust_contrast takes images [..., h, w, c]; got {images}")
    if contrast_factor.ndim or not contrast_factor.dtype.is_floating:
        raise InvalidArgumentError(f"adjust_contrast: the factor must be a floating scalar; got "
                                   f"{contrast_factor}")
    return images


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """(x - mean) factor + mean for each image and channel, the mean over height and width.

    No gradient is registered for it: differentiating it is a LookupError, until
    `tf.RegisterGradient("AdjustContrastv2")` gives one.

    Raises:
        InvalidArgumentError: fewer than three axes, or the factor is no floating scalar.
    """
    x = convert(images)
    factor = convert(contrast_factor if is_tensor(contrast_factor) else as_float(
        contrast_factor, "adjust_contrast: contrast_factor"), float32, x._t.device)
    return in_float(x, lambda image: adjust_contrast_(image, factor))


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """image + delta; integer images are scaled to [0, 1], changed, and scaled back."""
    return in_float(convert(image), lambda x: s.add(x, delta))


def adjust_gamma(image: TensorLike, gamma: object = 1, gain: object = 1) -> Tensor:
    """gain · image ** gamma, for values in [0, 1].

    Raises:
        InvalidArgumentError: a negative gamma, where it is known while tracing.
    """
    given = convert(gamma)
    if not given.dtype.is_integer and not given.dtype.is_floating:
        raise InvalidArgumentError(f"adjust_gamma: gamma must be real; got {given.spec}")
    if type(given) is EagerTensor and bool(
            np.any(given._peek() < 0)):
        raise InvalidArgumentError(f"adjust_gamma: gamma must not be negative; got {shown(gamma)}")
    return in_float(convert(image), lambda x: s.multiply(
        convert_like(gain, x._t, "adjust_gamma"), s.power(x, gamma)))


def per_image_standardization(image: TensorLike) -> Tensor:
    """(x - mean) / max(std, 1 / √n) for each image of n numbers, float32 (float16 stays).

    Raises:
        ValueError: fewer than three axes.
    """
    x = convert(image)
    if x.ndim < 3:
        raise ValueError(f"per_image_standardization takes images [..., h, w, c]; got {x.spec}")
    if x.dtype.name not in ("float16", "float32"):
        x = cast(x, float32)
    axes = (x.ndim - 3, x.ndim - 2, x.ndim - 1)
    count = math.prod(x.spec.shape[-3:])
    spread = s.maximum(reduce_std(x, axes, True), 1 / math.sqrt(count) if count else 0.0)
    return (x - reduce_mean_(x, axis=axes, keepdims=True)) / spread


_images = images


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Σ |differences of neighbouring pixels|: a number for each image.

    Raises:
        ValueError: not three or four axes.
        InvalidArgumentError: unsigned integers, whose differences would wrap around.
    """
    x = _images("total_variation", images)
    if x.dtype.is_unsigned:
        raise InvalidArgumentError(f"total_variation: differences of {x.dtype!r} would wrap "
                                   f"around; use tf.image.convert_image_dtype(x, tf.float32)")
    down = x[..., 1:, :, :] - x[..., :-1, :, :]
    right = x[..., 1:, :] - x[..., :-1, :]
    axes = tuple(range(x.ndim))[-3:]
    return (reduce_sum_(absolute(down), axis=axes)
            + reduce_sum_(absolute(right), axis=axes))


# ---------------------------------------------------------------- colour
#: The brightness of ITU-R BT.601, in the digits that TensorFlow has.
_LUMA = np.array([0.2989, 0.5870, 0.1140], np.float32)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """0.2989 red + 0.5870 green + 0.1140 blue, with one channel.

    Raises:
        ValueError: the last axis has not three channels.
    """
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3:
        raise ValueError(f"rgb_to_grayscale takes images with 3 channels in the last axis; got "
                         f"{x.spec}")

    def grey(image: Tensor) -> Tensor:
        weights = convert(_LUMA.astype(image.dtype.np_dtype), None, image._t.device)
        return reduce_sum_(image * weights, axis=(image.ndim - 1,),
                           keepdims=True)

    if x.dtype.is_floating:
        return grey(x)
    return convert_image_dtype(grey(convert_image_dtype(x, float32)), x.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel three times.

    Raises:
        ValueError: the last axis has not one channel.
    """
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 1:
        raise ValueError(f"grayscale_to_rgb takes images with 1 channel in the last axis; got "
                         f"{x.spec}")
    return concat_(x, x, x, axis=x.ndim - 1)


def psnr(a: TensorLike, b: TensorLike, max_val: Any, name: str | None = None) -> Tensor:
    """20 log₁₀(max) - 10 log₁₀(mean (a - b)²) in dB, for each pair of images.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
    """
    peak = as_float(max_val, "psnr: max_val")
    x, y = convert(a), convert(b)
    top = peak / float(x.dtype.max) if x.dtype.is_integer else peak
    x, y = convert_image_dtype(x, float32), convert_image_dtype(y, float32)
    axes = tuple(range(max(x.ndim, y.ndim)))[-3:]
    error = reduce_mean_(s.squared_difference(x, y), axis=axes)
    return s.subtract(20 * math.log10(top), s.log(error) * (10 / math.log(10)))


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

"""Images [n, h, w, c] or [h, w, c]: brightness, contrast, colour, and how alike two of them are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from gtape.ops.arguments import as_float, as_int, named
from gtape.ops.elementwise import scalars as s
from gtape.ops.elementwise.operators import absolute
from gtape.ops.linalg.contraction import tensordot
from gtape.ops.nn.convolution import depthwise_conv2d
from gtape.ops.reductions.moments import reduce_std
from gtape.ops.reductions.reductions import reduce_mean_, reduce_sum_
from gtape.ops.shape.casting import cast, saturate_cast
from gtape.ops.shape.layout import reshape, reshape_
from gtape.ops.shape.packing import concat_, stack_, unstack_

if TYPE_CHECKING:
    from gtape.opdef.scalar_graph import Expr


def of_rank(name: str, value: TensorLike, ranks: tuple[int, ...] = (3, 4)) -> Tensor:
    """A tensor of images. Raises ValueError: it has another rank."""
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
    # A factor, as TensorFlow has it: a division would differ in the last digit.
    if x.dtype.is_integer:
        return s.multiply(cast(x, wanted), 1.0 / float(x.dtype.max))
    if wanted.is_integer:
        # TensorFlow's scale: 1.0 reaches the largest integer, and casting cuts off.
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
    # nan for no pixels, as a mean of nothing is.
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

    Raises InvalidArgumentError: fewer than three axes, or the factor is no floating scalar."""
    x = convert(images)
    factor = convert(contrast_factor if is_tensor(contrast_factor) else as_float(
        contrast_factor, "adjust_contrast: contrast_factor"), float32, x._t.device)
    return in_float(x, lambda image: adjust_contrast_(image, factor))


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """image + delta; integer images are scaled to [0, 1], changed, and scaled back."""
    return in_float(convert(image), lambda x: s.add(x, delta))


def adjust_gamma(image: TensorLike, gamma: object = 1, gain: object = 1) -> Tensor:
    """gain · image ** gamma, for values in [0, 1].
    Raises InvalidArgumentError: a negative gamma, where it is known while tracing."""
    given = convert(gamma)
    if not given.dtype.is_integer and not given.dtype.is_floating:
        raise InvalidArgumentError(f"adjust_gamma: gamma must be real; got {given.spec}")
    if type(given) is EagerTensor and bool(np.any(given._peek() < 0)):
        raise InvalidArgumentError(f"adjust_gamma: gamma must not be negative; got {shown(gamma)}")
    return in_float(convert(image), lambda x: s.multiply(
        convert_like(gain, x._t, "adjust_gamma"), s.power(x, gamma)))


def per_image_standardization(image: TensorLike) -> Tensor:
    """(x - mean) / max(std, 1 / √n) for each image of n numbers, float32 (float16 stays).
    Raises ValueError: fewer than three axes."""
    x = convert(image)
    if x.ndim < 3:
        raise ValueError(f"per_image_standardization takes images [..., h, w, c]; got {x.spec}")
    if x.dtype.name not in ("float16", "float32"):
        x = cast(x, float32)
    axes = (x.ndim - 3, x.ndim - 2, x.ndim - 1)
    count = math.prod(x.spec.shape[-3:])
    # The bound keeps an image of one colour from 0 / 0.
    spread = s.maximum(reduce_std(x, axes, True), 1 / math.sqrt(count) if count else 0.0)
    return (x - reduce_mean_(x, axis=axes, keepdims=True)) / spread


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Σ |differences of neighbouring pixels|: a number for each image.
    Raises ValueError: not three or four axes;
    InvalidArgumentError: unsigned integers, whose differences would wrap around."""
    x = of_rank("total_variation", images)
    if x.dtype.is_unsigned:
        raise InvalidArgumentError(f"total_variation: differences of {x.dtype!r} would wrap "
                                   f"around; use tf.image.convert_image_dtype(x, tf.float32)")
    down = x[..., 1:, :, :] - x[..., :-1, :, :]
    right = x[..., 1:, :] - x[..., :-1, :]
    axes = tuple(range(x.ndim))[-3:]
    return reduce_sum_(absolute(down), axis=axes) + reduce_sum_(absolute(right), axis=axes)


# ---------------------------------------------------------------- colour
#: The brightness of ITU-R BT.601, in the digits that TensorFlow has.
_LUMA = np.array([0.2989, 0.5870, 0.1140], np.float32)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """0.2989 red + 0.5870 green + 0.1140 blue, with one channel.
    Raises ValueError: the last axis has not three channels."""
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3:
        raise ValueError(f"rgb_to_grayscale takes images with 3 channels in the last axis; got "
                         f"{x.spec}")

    def grey(image: Tensor) -> Tensor:
        weights = convert(_LUMA.astype(image.dtype.np_dtype), None, image._t.device)
        return reduce_sum_(image * weights, axis=(image.ndim - 1,), keepdims=True)

    if x.dtype.is_floating:
        return grey(x)
    return convert_image_dtype(grey(convert_image_dtype(x, float32)), x.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel three times. Raises ValueError: the last axis has not one channel."""
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 1:
        raise ValueError(f"grayscale_to_rgb takes images with 1 channel in the last axis; got "
                         f"{x.spec}")
    return concat_(x, x, x, axis=x.ndim - 1)


def _hue(red: Any, green: Any, blue: Any) -> Expr:
    """The angle of a colour on the wheel, in turns of [0, 1); 0 for grey.

    (g - b) / 6d, (b - r) / 6d + 1/3 or (r - g) / 6d + 2/3 as red, green or blue is the largest, d
    being the largest less the smallest.
    """
    top = _brightest(red, green, blue)
    spread = top - s.minimum(red, s.minimum(green, blue))
    # Both branches of a `where` are differentiated: 0 / 0 in the one not taken would give nan.
    colourful = spread > 0
    sixth = (1 / 6) / s.where(colourful, spread, 1)
    second = s.where(green >= top, sixth * (blue - red) + 1 / 3, sixth * (red - green) + 2 / 3)
    angle = s.where(red >= top, sixth * (green - blue), second)
    return s.where(colourful, s.where(s.less(angle, 0), angle + 1, angle), 0)


def _saturation(red: Expr, green: Expr, blue: Expr) -> Expr:
    """1 - smallest / largest; 0 where the largest is not positive."""
    top = _brightest(red, green, blue)
    spread = top - s.minimum(red, s.minimum(green, blue))
    lit = top > 0
    return s.where(lit, spread / s.where(lit, top, 1), 0)


def _brightest(red: Any, green: Any, blue: Any) -> Any:
    """The largest of the three."""
    return s.maximum(red, s.maximum(green, blue))


def _of_hsv(name: str, share: Callable[[Any], Any], formula: str, domain: tuple[float, float],
            ) -> Any:
    """A channel of a colour: v (1 - s + s clip(share, 0, 1)), its share given by the hue."""
    def channel(h: Any, strength: Any, v: Any) -> Expr:
        return ((1 - strength) + strength * s.clip(share(h), 0, 1)) * v

    channel.__doc__ = f"v (1 - s + s clip({formula}, 0, 1))."
    return s.scalar_function(channel, types="real_float", name=f"{name}_of_hsv", domain=domain)


hue = s.scalar_function(_hue, types="real_float", name="hue", domain=(0.1, 0.9))
saturation = s.scalar_function(_saturation, types="real_float", name="saturation",
                               domain=(0.1, 0.9))
brightest = s.scalar_function(_brightest, types="real_float", name="brightest")
# Each where its share grows or falls steadily: at the corners two slopes are right.
red_of = _of_hsv("red", lambda h: s.real_abs(h * 6 - 3) - 1, "|6h - 3| - 1", (0.2, 0.3))
green_of = _of_hsv("green", lambda h: 2 - s.real_abs(h * 6 - 2), "2 - |6h - 2|", (0.02, 0.15))
blue_of = _of_hsv("blue", lambda h: 2 - s.real_abs(h * 6 - 4), "2 - |6h - 4|", (0.36, 0.48))


def _three_floats(name: str, images: TensorLike) -> Tensor:
    x = convert(images)
    if not x.ndim or x.spec.shape[-1] != 3 or not x.dtype.is_floating:
        raise InvalidArgumentError(f"{name} takes floating images with 3 channels in the last "
                                   f"axis; got {x.spec}. tf.image.convert_image_dtype(x, "
                                   f"tf.float32) makes floats of integers")
    return x


def _to_hsv(x: Tensor) -> list[Tensor]:
    colours = unstack_(x, axis=x.ndim - 1)
    return [hue(*colours), saturation(*colours), brightest(*colours)]


def _from_hsv(parts: Sequence[Tensor]) -> Tensor:
    return stack_(red_of(*parts), green_of(*parts), blue_of(*parts), axis=parts[0].ndim)


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value in [0, 1] of red, green and blue in [0, 1], channels last.

    The value is the largest of the three, the saturation 1 - smallest / largest, and the hue the
    angle on the colour wheel, in turns. Differentiable.

    Raises InvalidArgumentError: not floating, or the last axis has not three channels."""
    x = _three_floats("rgb_to_hsv", images)
    return stack_(*_to_hsv(x), axis=x.ndim - 1)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value, channels last: `rgb_to_hsv` undone.

    Differentiable, where TensorFlow has no gradient.

    Raises InvalidArgumentError: not floating, or the last axis has not three channels."""
    x = _three_floats("hsv_to_rgb", images)
    return _from_hsv(unstack_(x, axis=x.ndim - 1))


# ---------------------------------------------------------------- changes of colour
def _coloured(name: str, image: TensorLike, change: Callable[[list[Tensor]], list[Tensor]],
              ) -> Tensor:
    """`image`, changed in hue, saturation and value, and back in its dtype."""
    x = convert(image)
    if x.ndim < 3 or x.spec.shape[-1] != 3:
        raise InvalidArgumentError(f"{name} takes images [..., h, w, 3]; got {x.spec}")
    return in_float(x, lambda floats: _from_hsv(change(_to_hsv(floats))))


def adjust_hue(image: TensorLike, delta: SupportsFloat, name: str | None = None) -> Tensor:
    """Colours turned by `delta` on the colour wheel, in turns; integer images are scaled to [0, 1].
    Raises ValueError: `delta` outside [-1, 1], where it is known while tracing;
    InvalidArgumentError: no images with three channels."""
    turn = convert(delta)
    if type(turn) is EagerTensor and not -1 <= as_float(turn, "adjust_hue: delta") <= 1:
        raise ValueError(f"adjust_hue: delta must lie in [-1, 1]; got {shown(delta)}")

    def turned(parts: list[Tensor]) -> list[Tensor]:
        h = s.add(parts[0], cast(turn, parts[0].dtype))
        return [h - s.floor(h), *parts[1:]]

    return _coloured("adjust_hue", image, turned)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None,
                      ) -> Tensor:
    """Saturation times a factor, at most 1; integer images are scaled to [0, 1].
    Raises InvalidArgumentError: no images with three channels."""
    factor = convert(saturation_factor)

    def more(parts: list[Tensor]) -> list[Tensor]:
        grown = s.multiply(parts[1], cast(factor, parts[1].dtype))
        return [parts[0], s.clip(grown, 0, 1), parts[2]]

    return _coloured("adjust_saturation", image, more)


# ---------------------------------------------------------------- brightness and two of colour
#: ITU-R BT.601, whose rows are brightness and two differences of colours.
_YUV = np.array([[0.299, 0.587, 0.114], [-0.14714119, -0.28886916, 0.43601035],
                 [0.61497538, -0.51496512, -0.10001026]])
_YIQ = np.array([[0.299, 0.587, 0.114], [0.59590059, -0.27455667, -0.32134392],
                 [0.21153661, -0.52273617, 0.31119955]])
#: TensorFlow has a rounded number in one of the two, so that there and back is not the identity.
_TO_YIQ = np.where(_YIQ == 0.21153661, 0.2115, _YIQ)


def _mixing(name: str, weights: np.ndarray, doc: str) -> Callable[[TensorLike], Tensor]:
    """The public function that multiplies colours by a matrix."""
    def mix(images: TensorLike) -> Tensor:
        x = _three_floats(name, images)
        table = convert(weights.T.astype(x.dtype.np_dtype), None, x._t.device)
        return tensordot(x, table, 1)

    return named(mix, name, doc)


_FROM_RGB = """Brightness and the two colours of {}, of red, green and blue; channels last.

    Raises InvalidArgumentError: not floating, or the last axis has not three channels."""
rgb_to_yuv = _mixing("rgb_to_yuv", _YUV, _FROM_RGB.format("PAL"))
yuv_to_rgb = _mixing("yuv_to_rgb", np.linalg.inv(_YUV), "`rgb_to_yuv` undone. Raises as it.")
rgb_to_yiq = _mixing("rgb_to_yiq", _TO_YIQ, _FROM_RGB.format("NTSC"))
yiq_to_rgb = _mixing("yiq_to_rgb", np.linalg.inv(_YIQ), "`rgb_to_yiq` undone. Raises as it.")


# ---------------------------------------------------------------- how alike two images are
def psnr(a: TensorLike, b: TensorLike, max_val: Any, name: str | None = None) -> Tensor:
    """20 log₁₀(max) - 10 log₁₀(mean (a - b)²) in dB, for each pair of images.
    Raises InvalidArgumentError: the shapes do not broadcast."""
    peak = as_float(max_val, "psnr: max_val")
    x, y = convert(a), convert(b)
    # In units of the floats that both images become.
    top = peak / float(x.dtype.max) if x.dtype.is_integer else peak
    x, y = convert_image_dtype(x, float32), convert_image_dtype(y, float32)
    axes = tuple(range(max(x.ndim, y.ndim)))[-3:]
    error = reduce_mean_(s.squared_difference(x, y), axis=axes)
    return s.subtract(20 * math.log10(top), s.log(error) * (10 / math.log(10)))


def _gaussian_window(size: int, sigma: float, channels: int) -> np.ndarray:
    """[size, size, channels, 1]: a Gaussian whose entries add up to 1."""
    line = np.exp(-(np.arange(size) - (size - 1) / 2) ** 2 / (2 * sigma ** 2))
    # A product of two lines, normalised once.
    square = np.outer(line, line) / line.sum() ** 2
    return np.tile(square[:, :, None, None], (1, 1, channels, 1)).astype(np.float32)


def _image_pair(img1: TensorLike, img2: np.ndarray, size: int) -> tuple[Tensor, Tensor]:
    x, y = convert(img1), convert(img2)
    shape = x.spec.shape
    if x.ndim < 3 or y.spec.shape != shape or size < 1 or min(shape[-3:-1]) < size:
        raise InvalidArgumentError(f"ssim takes two images of one shape [..., h, w, c], of at "
                                   f"least {size} x {size} pixels, the filter_size; got {x.spec} "
                                   f"and {y.spec}")
    return tuple(reshape(convert_image_dtype(v, float32), (-1, *shape[-3:])) for v in (x, y))


def ssim(img1: TensorLike, img2: Any, max_val: float, filter_size: int = 11,
         filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
         return_index_map: bool = False) -> Tensor:
    """The structural similarity of images [..., h, w, c], 1 for equal ones: float32 [...].

    Means, variances and the covariance of windows under a Gaussian are compared:
    (2 m₁m₂ + c₁) (2 v₁₂ + c₂) / ((m₁² + m₂² + c₁) (v₁ + v₂ + c₂)), cᵢ = (kᵢ max_val)², on average
    over all windows and channels (Wang et al. 2004). Differentiable in both.

    Args:
        max_val: the difference between the largest and the smallest value that pixels may have.
        return_index_map: give the similarity of each window, [..., h', w'].

    Raises:
        InvalidArgumentError: shapes that differ, fewer than three axes, or images smaller than the
            filter.
    """
    size, sigma = as_int(filter_size, "ssim: filter_size"), as_float(filter_sigma, "filter_sigma")
    given = convert(img1)
    # Images become floats in [0, 1] below, and the peak must be in their units.
    peak = as_float(max_val, "ssim: max_val") / (
        float(given.dtype.max) if given.dtype.is_integer else 1.0)
    c1, c2 = ((as_float(k, "ssim: k1, k2") * peak) ** 2 for k in (k1, k2))
    x, y = _image_pair(img1, img2, size)
    window = convert(_gaussian_window(size, sigma, x.spec.shape[3]), None, x._t.device)

    def mean(values: Tensor) -> Tensor:
        return depthwise_conv2d(values, window, [1, 1, 1, 1], "VALID")

    mx, my = mean(x), mean(y)
    both, each = mx * my * 2.0, s.square(mx) + s.square(my)
    shared = mean(x * y) * 2.0 - both
    # Var x + Var y in one convolution, since only the sum is needed.
    spread = mean(s.square(x) + s.square(y)) - each
    likeness = (both + c1) / (each + c1) * ((shared + c2) / (spread + c2))
    result = reduce_mean_(likeness, axis=(3,) if return_index_map else (1, 2, 3))
    return reshape_(result, shape=(*given.spec.shape[:-3], *result.spec.shape[1:]))

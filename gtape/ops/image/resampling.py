"""Images read at other places: at another size, in boxes, through projective maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, SupportsFloat

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32, float64, int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.elementwise import scalars as s
from gtape.ops.image.adjustments import of_rank
from gtape.ops.image.geometry import pad_to_bounding_box
from gtape.ops.indexing.gathering import gather_, within
from gtape.ops.linalg.products import matmul_
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.casting import cast, cast_
from gtape.ops.shape.identity import stop_gradient
from gtape.ops.shape.layout import broadcast_to_, expand_dims, reshape_


class ResizeMethod:
    """The names of the methods of `resize`."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


Kernel = Callable[[np.ndarray], np.ndarray]


def _cubic(b: float, c: float) -> Kernel:
    """The cubic kernels of Mitchell & Netravali 1988: (0, 1/2) is Catmull-Rom's."""
    def kernel(t: np.ndarray) -> np.ndarray:
        near = ((12 - 9 * b - 6 * c) * t**3 + (-18 + 12 * b + 6 * c) * t**2 + 6 - 2 * b) / 6
        far = ((-b - 6 * c) * t**3 + (6 * b + 30 * c) * t**2 + (-12 * b - 48 * c) * t
               + 8 * b + 24 * c) / 6
        return np.where(t < 1, near, np.where(t < 2, far, 0.0))

    return kernel


def _lanczos(radius: int) -> Kernel:
    return lambda t: np.where(t < radius, np.sinc(t) * np.sinc(t / radius), 0.0)


#: By the distance from a pixel, which is not negative. TensorFlow's Gaussian has deviation 1/2.
_KERNELS: dict[str, Kernel] = {
    "bilinear": lambda t: np.maximum(1 - t, 0), "bicubic": _cubic(0, 0.5),
    "lanczos3": _lanczos(3), "lanczos5": _lanczos(5),
    "gaussian": lambda t: np.where(t < 1.5, np.exp(-(t**2) / (2 * 0.5**2)), 0.0),
    "mitchellcubic": _cubic(1 / 3, 1 / 3)}
#: Kernels that change an image even where its size stays.
_BLURRING = ("gaussian", "mitchellcubic")
METHODS = (*_KERNELS, "nearest", "area")


# Images of a pipeline have few sizes; an entry is a matrix of one side before by one after.
@lru_cache(maxsize=64)
def _weights(before: int, after: int, method: str, antialias: bool) -> np.ndarray:
    """[after, before]: how much of each old pixel goes into each new one; rows add up to 1."""
    scale = before / after
    if method == "area":
        starts = np.arange(after)[:, None] * scale
        cells = np.arange(before)[None, :]
        covered = np.minimum(starts + scale, cells + 1) - np.maximum(starts, cells)
        return (np.maximum(covered, 0) / scale).astype(np.float32)
    kernel = _KERNELS[method]
    # Without antialias a kernel is as wide as a new pixel's neighbours, also where pixels are lost.
    width = max(scale, 1.0) if antialias else 1.0
    centres = (np.arange(after) + 0.5) * scale - 0.5
    # TensorFlow samples this one at the border pixels; the others renormalise what is inside.
    if method == "bilinear" and not antialias:
        centres = np.clip(centres, 0, before - 1)
    y = kernel(np.abs(centres[:, None] - np.arange(before)[None, :]) / width)
    total = y.sum(1, keepdims=True)
    return (y / np.where(total == 0, 1, total)).astype(np.float32)


def _along(x: Tensor, axis: int, length: int, method: str, antialias: bool) -> Tensor:
    """`x` [n, h, w, c] resampled along one axis."""
    shape = x.spec.shape
    if shape[axis] == length and method not in _BLURRING:
        return x
    if method == "nearest":
        at = np.minimum((np.arange(length) + 0.5) * (shape[axis] / length), shape[axis] - 1)
        return gather_(x, convert(at.astype(np.int32), None, x._t.device), axis=axis)
    table = _weights(shape[axis], length, method, antialias)
    device = x._t.device
    matrix = EagerTensor(device.upload(table), device.typed(float32))
    rows = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
    # A product, which has BLAS and kernels, and the transposed product for its gradient.
    y = matmul_(matrix, reshape_(x, shape=rows))
    return reshape_(y, shape=(*shape[:axis], length, *shape[axis + 1:]))


def resize(images: TensorLike, size: IntsLike, method: str = "bilinear",
           preserve_aspect_ratio: bool = False, antialias: bool = False, name: str | None = None,
           ) -> Tensor:
    """Images [n, h, w, c] or [h, w, c] at `size` (height, width).

    Pixels are squares with their centres at half-integers. The result is float32, but for
    "nearest", which keeps the dtype.

    Args:
        method: one of bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian,
            mitchellcubic.
        preserve_aspect_ratio: the largest size inside `size` with the proportions of the images.
        antialias: widen the kernel where the images shrink.

    Raises ValueError: an unknown method, or no images;
    InvalidArgumentError: `size` does not hold two positive integers."""
    x = convert(images)
    kind = getattr(method, "value", method)
    kind = kind.lower() if isinstance(kind, str) else ""
    if kind not in METHODS:
        raise ValueError(f"resize: the method must be one of {', '.join(METHODS)}; got "
                         f"{shown(method)}")
    of_rank("resize", x)
    wanted = as_ints(size, "resize: size")
    if len(wanted) != 2 or min(wanted) < 1:
        raise InvalidArgumentError(f"resize: size must be two positive integers (height, width); "
                                   f"got {list(wanted)}")
    shape = x.spec.shape
    if max(wanted) >= 2 ** 31:
        raise InvalidArgumentError(f"resize: height and width must be below 2**31; got {wanted}")
    batch = x if x.ndim == 4 else reshape_(x, shape=(1, *shape))
    _, height, width, _ = batch.spec.shape
    if not height or not width:
        raise InvalidArgumentError(f"resize: the images must have pixels; got {x.spec}")
    if preserve_aspect_ratio:
        factor = min(wanted[0] / height, wanted[1] / width)
        # A long thin image may round to no pixels across.
        wanted = (max(round(factor * height), 1), max(round(factor * width), 1))
    y = batch if kind == "nearest" else cast(batch, float32)
    # Matrices of weights grow with the size: a size beyond memory is refused in words.
    with room_for("resize", Spec((shape[0], *wanted, shape[-1]), y.dtype)):
        y = _along(_along(y, 1, wanted[0], kind, antialias), 2, wanted[1], kind, antialias)
    return y if x.ndim == 4 else reshape_(y, shape=y.spec.shape[1:])


def resize_with_pad(image: TensorLike, target_height: int, target_width: int,
                    method: str = "bilinear", antialias: bool = False) -> Tensor:
    """The largest image of the same proportions that fits into the target, zeros around it.
    Raises ValueError: a target below 1, an unknown method, or no images."""
    x = of_rank("resize_with_pad", image)
    height = as_int(target_height, "resize_with_pad: target_height")
    width = as_int(target_width, "resize_with_pad: target_width")
    if min(height, width) < 1:
        raise ValueError(f"resize_with_pad needs a positive target; got {height} x {width}")
    rows, columns = x.spec.shape[-3:-1]
    ratio = max(columns / width, rows / height)
    size = (math.floor(rows / ratio), math.floor(columns / ratio))
    y = resize(x, size, method, antialias=antialias)
    top, left = (height - rows / ratio) / 2, (width - columns / ratio) / 2
    return pad_to_bounding_box(y, max(math.floor(top), 0), max(math.floor(left), 0), height, width)


def _evenly(low: Tensor, high: Tensor, length: int, count: int) -> Tensor:
    """[n, count] places on an axis of `length` pixels, evenly from `low` to `high` in [0, 1]."""
    if count == 1:
        return (low + high) * (0.5 * (length - 1))
    steps = convert(np.arange(count, dtype=np.float32) / (count - 1), None, low._t.device)
    return (low + (high - low) * steps) * float(length - 1)


def _neighbours(at: Tensor, length: int, method: str) -> list[tuple[Tensor, Tensor]]:
    """The pixels that a place on an axis is read from, and their shares."""
    held = s.clip(at, 0.0, float(length - 1))
    if method == "nearest":
        # 0 · held, so that the boxes are connected, with zeros for gradients.
        return [(cast(s.floor(held + 0.5), int32), held * 0.0 + 1.0)]
    low = stop_gradient(s.floor(held))
    # Of `at`, since the slope of `held` ends at the border; what lies beyond is replaced later.
    share = at - low
    return [(cast(low, int32), 1.0 - share), (cast(s.ceil(held), int32), share)]


def _on_axis(at: Tensor, length: int) -> Tensor:
    return s.logical_and(at >= 0.0, at <= float(length - 1))


def _check_boxes(image: TensorLike, boxes: TensorLike, box_indices: Sequence[int],
             crop_size: Sequence[int], method: str,
             ) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    x, places = convert(image), cast(convert(boxes), float32)
    owners, size = convert(box_indices, None, x._t.device), as_ints(crop_size, "crop_size")
    if x.ndim != 4 or not (x.dtype.is_integer or x.dtype.is_floating) or 0 in x.spec.shape[1:3]:
        raise InvalidArgumentError(f"crop_and_resize takes images of real numbers [n, h, w, c]; "
                                   f"got {x.spec}")
    if places.ndim != 2 or places.spec.shape[1] != 4 or not owners.dtype.is_integer or (
            owners.spec.shape != places.spec.shape[:1]):
        raise InvalidArgumentError(f"crop_and_resize takes boxes [m, 4] and integers box_indices "
                                   f"[m]; got {places.spec} and {owners.spec}")
    if len(size) != 2 or min(size) < 1 or method not in ("bilinear", "nearest"):
        raise InvalidArgumentError(f"crop_and_resize: crop_size must be two positive numbers and "
                                   f"the method 'bilinear' or 'nearest'; got {list(size)} and "
                                   f"{shown(method)}")
    return x, places, within(owners, 0, x.spec.shape[0], "crop_and_resize: box_indices"), size


def crop_and_resize(image: TensorLike, boxes: TensorLike, box_indices: Any, crop_size: Any,
                    method: str = "bilinear", extrapolation_value: SupportsFloat = 0.0,
                    name: str | None = None) -> Tensor:
    """Boxes of images [n, h, w, c], each at `crop_size`: float32 [m, *crop_size, c].

    The corners of a box are at the centres of its first and last pixels. Differentiable in the
    images, and with "bilinear" in the boxes.

    Args:
        boxes: [m, 4]: y1, x1, y2, x2, where 0 and 1 are the first and the last row or column. A
            box may be turned over, or reach beyond the image.
        box_indices: [m]: the image of each box.
        method: "bilinear" or "nearest".
        extrapolation_value: what is beyond the image.

    Raises InvalidArgumentError: shapes or dtypes do not fit, or a box has no image."""
    x, places, owners, size = _check_boxes(image, boxes, box_indices, crop_size, method)
    count, height, width, channels = x.spec.shape
    corners = [expand_dims(places[:, i], -1) for i in range(4)]
    y = _evenly(corners[0], corners[2], height, size[0])
    x_at = _evenly(corners[1], corners[3], width, size[1])
    pixels = cast(reshape_(x, shape=(count * height * width, channels)), float32)
    first = cast(owners, int32) * height
    result: Any = 0.0
    for row, down in _neighbours(y, height, method):
        start = (row + expand_dims(first, -1)) * width
        for column, along in _neighbours(x_at, width, method):
            at = expand_dims(start, 2) + expand_dims(column, 1)
            share = expand_dims(down, 2) * expand_dims(along, 1)
            result = gather_(pixels, at, axis=0) * expand_dims(share, -1) + result
    seen = s.logical_and(expand_dims(_on_axis(y, height), 2), expand_dims(_on_axis(x_at, width), 1))
    beyond = convert(extrapolation_value, float32, x._t.device)
    return s.where(expand_dims(seen, -1), result, beyond)


_INTERPOLATIONS = ("NEAREST", "BILINEAR")
_MODES = ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
_DTYPES = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


# ---------------------------------------------------------------- where a pixel is read
def _inside(xp: ArrayModule, at: Array, length: int, mode: str) -> Any:
    """Places on an axis of `length` pixels in place of those beyond its ends."""
    if mode == "CONSTANT":
        return at
    if mode == "REFLECT":
        turn = xp.mod(at, xp.float32(2 * length))
        at = xp.where(turn >= length, 2 * length - 1 - turn, turn)
    if mode == "WRAP":
        # Counted in steps between pixels, as TensorFlow does: by one fewer than there are pixels.
        gaps = max(length - 1, 1)
        below, above = xp.trunc(-at / gaps) + 1, xp.trunc(at / gaps)
        at = xp.where(at < 0, at + length * below,
                      xp.where(at > length - 1, at - length * above, at))
    return xp.clip(at, 0, length - 1)


def _places(xp: ArrayModule, transforms: Array, height: int, width: int,
            ) -> tuple[Array, Array, Array]:
    """Row and column that each of [height, width] pixels reads, and whether there is any."""
    a0, a1, a2, b0, b1, b2, c0, c1 = (transforms[:, i, None, None] for i in range(8))
    y = xp.arange(height, dtype=np.float32)[None, :, None]
    x = xp.arange(width, dtype=np.float32)[None, None, :]
    depth = c0 * x + c1 * y + 1
    # On the horizon there is no place to read.
    seen = depth != 0
    depth = xp.where(seen, depth, 1)
    return (b0 * x + b1 * y + b2) / depth, (a0 * x + a1 * y + a2) / depth, seen


@primitive(outputs="rows weights outside", nondifferentiable=True)
def projective_samples_(xp: ArrayModule, transforms: Array, *, batch: int, size: tuple[int, int],
                        shape: tuple[int, int], interpolation: str, mode: str,
                        ) -> tuple[Array, Array, Array]:
    """What each pixel of an image of `shape` reads of `batch` images of `size`.

    rows [n, h, w, k]: k pixels, numbered through all images; weights [n, h, w, k]: their shares;
    outside [n, h, w]: the share of what lies beyond the image.
    """
    height, width = size
    y, x, seen = _places(xp, transforms, *shape)
    y, x = _inside(xp, y, height, mode), _inside(xp, x, width, mode)
    if interpolation == "NEAREST":
        corners = [(_rounded(xp, y), _rounded(xp, x), xp.ones_like(x))]
    else:
        top, left = xp.floor(y), xp.floor(x)
        down, right = y - top, x - left
        corners = [(top, left, (1 - down) * (1 - right)), (top, left + 1, (1 - down) * right),
                   (top + 1, left, down * (1 - right)), (top + 1, left + 1, down * right)]
    images = xp.arange(batch, dtype=np.int64)[:, None, None] * (height * width)
    rows, weights = [], []
    for row, column, share in corners:
        held = (seen & (row >= 0) & (row < height) & (column >= 0) & (column < width))
        at = [xp.where(held, n, 0).astype(np.int64) for n in (row, column)]
        rows.append(images + at[0] * width + at[1])
        weights.append(xp.broadcast_to(xp.where(held, share, 0), rows[-1].shape))
    kept = xp.stack(weights, -1).astype(np.float32)
    return xp.stack(rows, -1), kept, 1 - kept.sum(-1)


def _rounded(xp: ArrayModule, at: Array) -> Array:
    """The nearest integer; halves away from 0."""
    # C's round, which TensorFlow calls; NumPy's rounds halves to even.
    return xp.trunc(at + xp.copysign(xp.float32(0.5), at))


@projective_samples_.infer
def _(transforms: Spec, *, batch: int, size: tuple[int, int], shape: tuple[int, int],
      interpolation: str, mode: str) -> tuple[Spec, ...]:
    count = 1 if interpolation == "NEAREST" else 4
    whole = (batch, *shape, count)
    return (Spec(whole, int64), Spec(whole, float32),
            Spec(whole[:3], float32))


projective_samples_.cases = [
    case(np.array([[0.9, 0.1, -0.4, 0.2, 1.1, 0.3, 0.01, 0.02]], np.float32), batch=2, size=(3, 4),
         shape=(2, 5), interpolation=interpolation, mode=mode)
    for interpolation in _INTERPOLATIONS for mode in _MODES]


# ---------------------------------------------------------------- the public function
def _check_maps(images: TensorLike, transforms: Tensor, output_shape: Tensor,
             ) -> tuple[Tensor, Tensor, tuple[int, int]]:
    x = convert(images)
    maps = convert(transforms, None, x._t.device)
    shape = as_ints(output_shape, "ImageProjectiveTransformV3: output_shape")
    if x.ndim != 4 or x.dtype.name not in _DTYPES:
        raise InvalidArgumentError(f"ImageProjectiveTransformV3: images must be [n, h, w, c] of "
                                   f"{', '.join(_DTYPES)}; got {x.spec}")
    if maps.ndim != 2 or maps.spec.shape[1] != 8 or maps.dtype is not float32 or (
            maps.spec.shape[0] not in (1, x.spec.shape[0])):
        raise InvalidArgumentError(f"ImageProjectiveTransformV3: transforms must be float32, "
                                   f"[{x.spec.shape[0]}, 8] or [1, 8]; got {maps.spec}")
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidArgumentError(f"ImageProjectiveTransformV3: output_shape must be two positive "
                                   f"numbers (height, width); got {list(shape)}")
    return x, maps, shape


def projective_transform(*, images: TensorLike, transforms: Tensor, output_shape: Tensor,
                         fill_value: TensorLike, interpolation: str, fill_mode: str = "CONSTANT",
                         name: str | None = None) -> Tensor:
    """Images [n, h, w, c] through projective maps: [n, *output_shape, c], in their dtype.

    A map [a0, a1, a2, b0, b1, b2, c0, c1] says where the pixel (x, y) of the result reads: at
    ((a0 x + a1 y + a2) / d, (b0 x + b1 y + b2) / d), d = c0 x + c1 y + 1. Weights are float32.

    The gradient in the images is the exact one: each pixel of the cotangent goes back to the pixels
    that were read, by their weights. (TensorFlow's sends it through the inverse map instead, which
    is near it.) None flows to the maps.

    Args:
        transforms: float32 [n, 8], or [1, 8] for all images.
        fill_value: what is read beyond the image, where `fill_mode` is "CONSTANT".
        interpolation: "NEAREST" or "BILINEAR".
        fill_mode: "CONSTANT", "REFLECT", "WRAP" or "NEAREST": what lies beyond the image.

    Raises InvalidArgumentError: shapes or dtypes do not fit;
    ValueError: another interpolation or fill_mode."""
    x, maps, shape = _check_maps(images, transforms, output_shape)
    if interpolation not in _INTERPOLATIONS or fill_mode not in _MODES:
        raise ValueError(f"ImageProjectiveTransformV3: interpolation must be one of "
                         f"{', '.join(_INTERPOLATIONS)} and fill_mode one of {', '.join(_MODES)}; "
                         f"got {shown(interpolation)} and {shown(fill_mode)}")
    count, height, width, channels = x.spec.shape
    filled = cast(convert(fill_value, None, x._t.device), x.dtype)
    # Without pixels there is nothing to gather from.
    if not math.prod(x.spec.shape):
        return broadcast_to_(filled, shape=(count, *shape, channels))
    rows, weights, outside = projective_samples_(
        maps, batch=count, size=(height, width), shape=shape, interpolation=interpolation,
        mode=fill_mode)
    # Weights are float32 whatever the images are, as TensorFlow's are.
    wide = float64 if x.dtype is float64 else float32
    pixels = cast(reshape_(x, shape=(count * height * width, channels)), wide)
    read = s.multiply(gather_(pixels, rows, axis=0), expand_dims(cast(weights, wide), -1))
    y = reduce_sum_(read, axis=(3,))
    if fill_mode == "CONSTANT":
        y = y + expand_dims(cast(outside, wide), -1) * cast(filled, wide)
    return y if x.dtype is wide else cast_(y, dtype=x.dtype)

"""Images seen through projective maps: each pixel of the result reads the image somewhere else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_ints
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.indexing.gathering import gather_
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.casting import cast, cast_
from gtape.ops.shape.layout import broadcast_to_, expand_dims, reshape_

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
    return xp.trunc(at + xp.copysign(xp.float32(0.5), at))


@projective_samples_.infer
def _(transforms: Spec, *, batch: int, size: tuple[int, int], shape: tuple[int, int],
      interpolation: str, mode: str) -> tuple[Spec, ...]:
    count = 1 if interpolation == "NEAREST" else 4
    whole = (batch, *shape, count)
    return (Spec(whole, dtypes.int64), Spec(whole, dtypes.float32),
            Spec(whole[:3], dtypes.float32))


projective_samples_.cases = [
    case(np.array([[0.9, 0.1, -0.4, 0.2, 1.1, 0.3, 0.01, 0.02]], np.float32), batch=2, size=(3, 4),
         shape=(2, 5), interpolation=interpolation, mode=mode)
    for interpolation in _INTERPOLATIONS for mode in _MODES]


# ---------------------------------------------------------------- the public function
def _checked(images: TensorLike, transforms: Tensor, output_shape: Tensor,
             ) -> tuple[Tensor, Tensor, tuple[int, int]]:
    x = convert(images)
    maps = convert(transforms, None, x._t.device)
    shape = as_ints(output_shape, "ImageProjectiveTransformV3: output_shape")
    if x.ndim != 4 or x.dtype.name not in _DTYPES:
        raise InvalidArgumentError(f"ImageProjectiveTransformV3: images must be [n, h, w, c] of "
                                   f"{', '.join(_DTYPES)}; got {x.spec}")
    if maps.ndim != 2 or maps.spec.shape[1] != 8 or maps.dtype is not dtypes.float32 or (
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

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit.
        ValueError: another interpolation or fill_mode.
    """
    x, maps, shape = _checked(images, transforms, output_shape)
    if interpolation not in _INTERPOLATIONS or fill_mode not in _MODES:
        raise ValueError(f"ImageProjectiveTransformV3: interpolation must be one of "
                         f"{', '.join(_INTERPOLATIONS)} and fill_mode one of {', '.join(_MODES)}; "
                         f"got {shown(interpolation)} and {shown(fill_mode)}")
    count, height, width, channels = x.spec.shape
    filled = cast(convert(fill_value, None, x._t.device), x.dtype)
    if not math.prod(x.spec.shape):
        return broadcast_to_(filled, shape=(count, *shape, channels))
    rows, weights, outside = projective_samples_(
        maps, batch=count, size=(height, width), shape=shape, interpolation=interpolation,
        mode=fill_mode)
    wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    pixels = cast(reshape_(x, shape=(count * height * width, channels)), wide)
    read = multiply(gather_(pixels, rows, axis=0), expand_dims(cast(weights, wide), -1))
    y = reduce_sum_(read, axis=(3,))
    if fill_mode == "CONSTANT":
        y = y + expand_dims(
            cast(outside, wide), -1) * cast(filled, wide)
    return y if x.dtype is wide else cast_(y, dtype=x.dtype)

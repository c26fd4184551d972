"""crop_and_resize: boxes of images, sampled at a grid of places each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_ints
from gtape.ops.checks.ranges import within
from gtape.ops.elementwise import scalars as s
from gtape.ops.indexing.gathering import gather_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.identity import stop_gradient
from gtape.ops.shape.layout import expand_dims, reshape_


def _places(low: Tensor, high: Tensor, length: int, count: int) -> Tensor:
    """[n, count] places on an axis of `length` pixels, evenly from `low` to `high` in [0, 1]."""
    if count == 1:
        return s.multiply(s.add(low, high), 0.5 * (length - 1))
    steps = convert(np.arange(count, dtype=np.float32) / (count - 1), None, low._t.device)
    return s.multiply(s.add(low, s.multiply(s.subtract(high, low), steps)), float(length - 1))


def _neighbours(at: Tensor, length: int, method: str) -> list[tuple[Tensor, Tensor]]:
    """The pixels that a place on an axis is read from, and their shares."""
    held = s.clip(at, 0.0, float(length - 1))
    if method == "nearest":
        return [(cast(s.floor(s.add(held, 0.5)), dtypes.int32), s.add(s.multiply(held, 0.0), 1.0))]
    low = stop_gradient(s.floor(held))
    share = s.subtract(at, low)
    high = s.ceil(held)
    return [(cast(low, dtypes.int32), s.subtract(1.0, share)), (cast(high, dtypes.int32), share)]


def _inside(at: Tensor, length: int) -> Tensor:
    return s.logical_and(s.greater_equal(at, 0.0), s.less_equal(at, float(length - 1)))


def _checked(image: TensorLike, boxes: TensorLike, box_indices: Sequence[int],
             crop_size: Sequence[int], method: str,
             ) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
    x, places = convert(image), cast(convert(boxes), dtypes.float32)
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

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit, or a box has no image.
    """
    x, places, owners, size = _checked(image, boxes, box_indices, crop_size, method)
    count, height, width, channels = x.spec.shape
    corners = [expand_dims(places[:, i], -1) for i in range(4)]
    y = _places(corners[0], corners[2], height, size[0])
    x_at = _places(corners[1], corners[3], width, size[1])
    pixels = cast(reshape_(x, shape=(count * height * width, channels)), dtypes.float32)
    first = s.multiply(cast(owners, dtypes.int32), height)
    result: Any = 0.0
    for row, down in _neighbours(y, height, method):
        start = s.multiply(s.add(row, expand_dims(first, -1)), width)
        for column, along in _neighbours(x_at, width, method):
            at = s.add(expand_dims(start, 2), expand_dims(column, 1))
            share = s.multiply(expand_dims(down, 2), expand_dims(along, 1))
            result = s.add(s.multiply(gather_(pixels, at, axis=0), expand_dims(share, -1)), result)
    seen = s.logical_and(expand_dims(_inside(y, height), 2),
                         expand_dims(_inside(x_at, width), 1))
    beyond = convert(extrapolation_value, dtypes.float32, x._t.device)
    return s.where(expand_dims(seen, -1), result, beyond)

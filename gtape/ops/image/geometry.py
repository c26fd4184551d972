"""Images flipped, turned, cropped, padded and cut into patches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.numerics import windows
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int, as_ints
from gtape.ops.image.adjustments import images as of_rank
from gtape.ops.indexing.getitem import getitem_, put_
from gtape.ops.shape.layout import transpose_
from gtape.ops.shape.packing import stack_
from gtape.ops.shape.padding import pad

_ALL = ("slice", None, None, None)
_BACKWARDS = ("slice", None, None, -1)


def _checked(name: str, value: Any) -> Tensor:
    """A tensor of images that have pixels and channels.

    Raises:
        ValueError: it has another rank.
        InvalidArgumentError: an image is empty. A batch may be.
    """
    x = of_rank(name, value)
    if any(type(n) is int and n == 0 for n in x.spec.shape[-3:]):
        raise InvalidArgumentError(f"{name}: height, width and channels must not be 0; got "
                                   f"{x.spec}")
    return x


def _picked(x: Tensor, rows: Any, columns: Any) -> Tensor:
    return getitem_(x, key=(*(_ALL,) * (x.ndim - 3), rows, columns, _ALL))


def flip_left_right(image: Any) -> Tensor:
    """The columns in reverse order.

    Raises:
        ValueError: not three or four axes.
    """
    return _picked(_checked("flip_left_right", image), _ALL, _BACKWARDS)


def flip_up_down(image: Any) -> Tensor:
    """The rows in reverse order.

    Raises:
        ValueError: not three or four axes.
    """
    return _picked(_checked("flip_up_down", image), _BACKWARDS, _ALL)


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Rows and columns exchanged.

    Raises:
        ValueError: not three or four axes.
    """
    x = _checked("transpose", image)
    first = x.ndim - 3
    return transpose_(x, perm=(*range(first), first + 1, first, first + 2))


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Turned counter-clockwise by `k` quarters.

    Raises:
        ValueError: not three or four axes.
    """
    x = _checked("rot90", image)
    turns = as_int(k, "rot90: k") % 4
    if turns == 1:
        return transpose(_picked(x, _ALL, _BACKWARDS))
    if turns == 2:
        return _picked(x, _BACKWARDS, _BACKWARDS)
    return _picked(transpose(x), _ALL, _BACKWARDS) if turns == 3 else x


# ---------------------------------------------------------------- crop and pad
def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                         target_width: Any) -> Tensor:
    """The box of the target size whose first corner is at the offsets.

    Raises:
        ValueError: the box is empty or not inside the image.
    """
    x = _checked("crop_to_bounding_box", image)
    top, left, height, width = _box("crop_to_bounding_box", offset_height, offset_width,
                                    target_height, target_width)
    rows, columns = x.spec.shape[-3:-1]
    if height < 1 or width < 1 or top + height > rows or left + width > columns:
        raise ValueError(f"crop_to_bounding_box: a box of {height} x {width} at ({top}, {left}) is "
                         f"not inside {x.spec}")
    return _picked(x, ("slice", top, top + height, None), ("slice", left, left + width, None))


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                        target_width: Any) -> Tensor:
    """Zeros of the target size with the image at the offsets.

    Raises:
        ValueError: the image does not fit into the target.
    """
    x = _checked("pad_to_bounding_box", image)
    top, left, height, width = _box("pad_to_bounding_box", offset_height, offset_width,
                                    target_height, target_width)
    *batch, rows, columns, channels = x.spec.shape
    if top + rows > height or left + columns > width:
        raise ValueError(f"pad_to_bounding_box: {x.spec} at ({top}, {left}) does not fit into "
                         f"{height} x {width}")
    key = (*(_ALL,) * len(batch), ("slice", top, top + rows, None),
           ("slice", left, left + columns, None), _ALL)
    return put_(x, key=key, shape=(*batch, height, width, channels))


def _box(name: str, *numbers: Any) -> tuple[int, ...]:
    found = tuple(as_int(n, name) for n in numbers)
    if min(found) < 0:
        raise ValueError(f"{name}: offsets and sizes must not be negative; got {list(found)}")
    return found


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of the image: `central_fraction` of its height and of its width.

    Raises:
        ValueError: the fraction is not in (0, 1].
    """
    x = _checked("central_crop", image)
    fraction = as_float(central_fraction, "central_crop: central_fraction")
    if not 0 < fraction <= 1:
        raise ValueError(f"central_crop: the fraction must lie in (0, 1]; got {fraction}")
    if fraction == 1:
        return x
    rows, columns = x.spec.shape[-3:-1]
    top, left = int((rows - rows * fraction) / 2), int((columns - columns * fraction) / 2)
    return crop_to_bounding_box(x, top, left, rows - 2 * top, columns - 2 * left)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The image in the middle of the target: cut where it is larger, with zeros where smaller.

    Raises:
        ValueError: a target below 1.
    """
    x = _checked("resize_with_crop_or_pad", image)
    height = as_int(target_height, "resize_with_crop_or_pad: height")
    width = as_int(target_width, "resize_with_crop_or_pad: width")
    if height < 1 or width < 1:
        raise ValueError(f"resize_with_crop_or_pad: the target must be positive; got "
                         f"{height} x {width}")
    rows, columns = x.spec.shape[-3:-1]
    cut = crop_to_bounding_box(x, max(rows - height, 0) // 2, max(columns - width, 0) // 2,
                               min(rows, height), min(columns, width))
    return pad_to_bounding_box(cut, max(height - rows, 0) // 2, max(width - columns, 0) // 2,
                               height, width)


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx) of images [n, h, w, c]: each pixel taken from the next; 0 in the last row, column.

    Raises:
        ValueError: not four axes.
    """
    x = of_rank("image_gradients", image, (4,))
    _, rows, columns, _ = x.spec.shape
    first, last = ("slice", 1, None, None), ("slice", None, -1, None)
    dy = _picked(x, first, _ALL) - _picked(x, last, _ALL)  # type: ignore[operator]
    dx = _picked(x, _ALL, first) - _picked(x, _ALL, last)  # type: ignore[operator]
    return (pad_to_bounding_box(dy, 0, 0, rows, columns),
            pad_to_bounding_box(dx, 0, 0, rows, columns))


def sobel_edges(image: Any) -> Tensor:
    """[n, h, w, c, 2]: the slopes dy and dx of images [n, h, w, c] by Sobel's 3 x 3 filters.

    Differences of the pixels on both sides, weighted 1, 2, 1 across; images are reflected at their
    borders.

    Raises:
        ValueError: not four axes.
        InvalidArgumentError: not floating, or fewer than 2 rows or columns.
    """
    x = of_rank("sobel_edges", image, (4,))
    if not x.dtype.is_floating or min(x.spec.shape[1:3]) < 2:
        raise InvalidArgumentError(f"sobel_edges takes floating images of at least 2 x 2 pixels; "
                                   f"got {x.spec}")
    whole: Any = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    across = whole[:, :, :-2] + 2 * whole[:, :, 1:-1] + whole[:, :, 2:]
    along = whole[:, :-2] + 2 * whole[:, 1:-1] + whole[:, 2:]
    return stack_(across[:, 2:] - across[:, :-2], along[:, :, 2:] - along[:, :, :-2], axis=4)


# ---------------------------------------------------------------- patches
Pair = tuple[int, int]


@primitive(linear="images", tf_name="ExtractImagePatches")
def extract_patches_(xp: Any, images: Any, *, size: Pair, strides: Pair, rates: Pair,
                     pads: tuple[Pair, Pair]) -> Any:
    """y[n, i, j, :] = the window of x at (i, j), rows first, channels last."""
    seen = windows.patches(xp, windows.pad(xp, images, pads), size, strides, rates)
    depth = math.prod(size) * images.shape[3]
    return xp.ascontiguousarray(seen).reshape((*seen.shape[:3], depth))


@extract_patches_.infer
def _(images: Spec, *, size: Pair, strides: Pair, rates: Pair, pads: tuple[Pair, Pair]) -> Spec:
    outs = windows.out_sizes(images.shape[1:3], size, strides, rates, pads)
    return images.reshaped((images.shape[0], *outs, math.prod(size) * images.shape[3]))


@extract_patches_.vjp("images")
def _(g: Any, images: Spec, *, size: Pair, strides: Pair, rates: Pair,
      pads: tuple[Pair, Pair]) -> Any:
    return fold_patches_(g, shape=images.shape, size=size, strides=strides, rates=rates, pads=pads)


@primitive(linear="g", tf_name="ExtractImagePatches")
def fold_patches_(xp: Any, g: Any, *, shape: tuple[int, ...], size: Pair, strides: Pair,
                  rates: Pair, pads: tuple[Pair, Pair]) -> Any:
    """The adjoint of extract_patches: windows added where they were taken from."""
    whole = windows.padded_shape(shape, pads)
    apart = g.reshape((*g.shape[:3], *size, shape[3]))
    return windows.crop(windows.fold(xp, apart, whole, size, strides, rates), pads)


@fold_patches_.infer
def _(g: Spec, *, shape: tuple[int, ...], size: Pair, strides: Pair, rates: Pair,
      pads: tuple[Pair, Pair]) -> Spec:
    return g.reshaped(shape)


@fold_patches_.vjp("g")
def _(g: Any, *, size: Pair, strides: Pair, rates: Pair, pads: tuple[Pair, Pair]) -> Any:
    return extract_patches_(g, size=size, strides=strides, rates=rates, pads=pads)


_WINDOW: dict[str, Any] = {"size": (2, 3), "strides": (1, 2), "rates": (2, 1),
                           "pads": ((1, 0), (0, 1))}
extract_patches_.cases = [case((2, 5, 6, 2), **_WINDOW)]
fold_patches_.cases = [case((1, 4, 3, 6), shape=(1, 5, 6, 1), **_WINDOW)]


def _middle(name: str, values: Any) -> Pair:
    found = as_ints(values, f"extract_patches: {name}")
    if len(found) != 4 or found[0] != 1 or found[3] != 1 or min(found) < 1:
        raise InvalidArgumentError(f"extract_patches: {name} must be [1, rows, columns, 1], "
                                   f"positive; got {list(found)}")
    return found[1], found[2]


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str,
                    name: str | None = None) -> Tensor:
    """[n, rows, columns, patch]: the windows of images [n, h, w, c], each laid out flat.

    Args:
        sizes, strides, rates: [1, rows, columns, 1] of a window, between windows, and between the
            pixels of a window.
        padding: "VALID" or "SAME".

    Raises:
        ValueError: not four axes, or another padding.
        InvalidArgumentError: sizes, strides or rates of another form.
    """
    x = of_rank("extract_patches", images, (4,))
    size, steps = _middle("sizes", sizes), _middle("strides", strides)
    apart = _middle("rates", rates)
    if str(padding).upper() not in ("VALID", "SAME"):
        raise ValueError(f"extract_patches: padding must be 'VALID' or 'SAME'; got "
                         f"{shown(padding)}")
    pads = windows.padding(str(padding).upper(), x.spec.shape[1:3], size, steps, apart)
    return extract_patches_(x, size=size, strides=steps, rates=apart,
                            pads=tuple((int(a), int(b)) for a, b in np.asarray(pads)))

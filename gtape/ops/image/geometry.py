"""Images flipped, turned, cropped, padded and cut into patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from gtape.core.annotations import TensorLike
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.numerics import windows
from gtape.ops.arguments import as_float, as_int, as_ints
from gtape.ops.image.adjustments import of_rank
from gtape.ops.indexing.getitem import WHOLE_AXIS, getitem_, put_
from gtape.ops.shape.blocks import patches_
from gtape.ops.shape.layout import transpose_
from gtape.ops.shape.packing import stack_
from gtape.ops.shape.padding import pad

_BACKWARDS = ("slice", None, None, -1)


def _checked(name: str, value: TensorLike) -> Tensor:
    """A tensor of images that have pixels and channels. A batch may be empty."""
    x = of_rank(name, value)
    # Lengths known only at a call are not looked at.
    if any(type(n) is int and n == 0 for n in x.spec.shape[-3:]):
        raise InvalidArgumentError(f"{name}: height, width and channels must not be 0; got "
                                   f"{x.spec}")
    return x


def _picked(x: Tensor, rows: tuple[str, int | None, int | None, int | None],
            columns: tuple[str, int | None, int | None, int | None]) -> Tensor:
    return getitem_(x, key=(*(WHOLE_AXIS,) * (x.ndim - 3), rows, columns, WHOLE_AXIS))


def flip_left_right(image: TensorLike) -> Tensor:
    """The columns in reverse order. Raises ValueError: not three or four axes."""
    return _picked(_checked("flip_left_right", image), WHOLE_AXIS, _BACKWARDS)


def flip_up_down(image: TensorLike) -> Tensor:
    """The rows in reverse order. Raises as `flip_left_right`."""
    return _picked(_checked("flip_up_down", image), _BACKWARDS, WHOLE_AXIS)


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows and columns exchanged. Raises as `flip_left_right`."""
    x = _checked("transpose", image)
    first = x.ndim - 3
    return transpose_(x, perm=(*range(first), first + 1, first, first + 2))


def rot90(image: TensorLike, k: int = 1, name: str | None = None) -> Tensor:
    """Turned counter-clockwise by `k` quarters. Raises as `flip_left_right`."""
    x = _checked("rot90", image)
    turns = as_int(k, "rot90: k") % 4
    if turns == 1:
        return transpose(_picked(x, WHOLE_AXIS, _BACKWARDS))
    if turns == 2:
        return _picked(x, _BACKWARDS, _BACKWARDS)
    return _picked(transpose(x), WHOLE_AXIS, _BACKWARDS) if turns == 3 else x


# ---------------------------------------------------------------- crop and pad
def crop_to_bounding_box(image: TensorLike, offset_height: SupportsIndex,
                         offset_width: SupportsIndex, target_height: SupportsIndex,
                         target_width: SupportsIndex) -> Tensor:
    """The box of the target size whose first corner is at the offsets.
    Raises ValueError: the box is empty or not inside the image."""
    name = "crop_to_bounding_box"
    x = _checked(name, image)
    top, left, height, width = _box(name, offset_height, offset_width, target_height, target_width)
    rows, columns = x.spec.shape[-3:-1]
    if height < 1 or width < 1 or top + height > rows or left + width > columns:
        raise ValueError(f"{name}: a box of {height} x {width} at ({top}, {left}) is "
                         f"not inside {x.spec}")
    return _picked(x, ("slice", top, top + height, None), ("slice", left, left + width, None))


def pad_to_bounding_box(image: TensorLike, offset_height: SupportsIndex,
                        offset_width: SupportsIndex, target_height: SupportsIndex,
                        target_width: SupportsIndex) -> Tensor:
    """Zeros of the target size with the image at the offsets.
    Raises ValueError: the image does not fit into the target."""
    name = "pad_to_bounding_box"
    x = _checked(name, image)
    top, left, height, width = _box(name, offset_height, offset_width, target_height, target_width)
    *batch, rows, columns, channels = x.spec.shape
    if top + rows > height or left + columns > width:
        raise ValueError(f"{name}: {x.spec} at ({top}, {left}) does not fit into {height} x "
                         f"{width}")
    key = (*(WHOLE_AXIS,) * len(batch), ("slice", top, top + rows, None),
           ("slice", left, left + columns, None), WHOLE_AXIS)
    # The adjoint of a slice, so that each is the other's gradient.
    return put_(x, key=key, shape=(*batch, height, width, channels))


def _box(name: str, *numbers: Any) -> tuple[int, ...]:
    box = tuple(as_int(n, name) for n in numbers)
    if min(box) < 0:
        raise ValueError(f"{name}: offsets and sizes must not be negative; got {list(box)}")
    return box


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of the image: `central_fraction` of its height and of its width.
    Raises ValueError: the fraction is not in (0, 1]."""
    x = _checked("central_crop", image)
    fraction = as_float(central_fraction, "central_crop: central_fraction")
    if not 0 < fraction <= 1:
        raise ValueError(f"central_crop: the fraction must lie in (0, 1]; got {fraction}")
    if fraction == 1:
        return x
    rows, columns = x.spec.shape[-3:-1]
    # As TensorFlow rounds: the offsets down, so that what is kept is centred and never smaller.
    top, left = int((rows - rows * fraction) / 2), int((columns - columns * fraction) / 2)
    return crop_to_bounding_box(x, top, left, rows - 2 * top, columns - 2 * left)


def resize_with_crop_or_pad(image: TensorLike, target_height: int, target_width: int) -> Tensor:
    """The image in the middle of the target: cut where it is larger, with zeros where smaller.
    Raises ValueError: a target below 1."""
    x = _checked("resize_with_crop_or_pad", image)
    height, width = _box("resize_with_crop_or_pad", target_height, target_width)
    if height < 1 or width < 1:
        raise ValueError(f"resize_with_crop_or_pad: the target must be positive; got "
                         f"{height} x {width}")
    rows, columns = x.spec.shape[-3:-1]
    # Halves are rounded down in both, as TensorFlow does: the odd pixel is at the end.
    cut = crop_to_bounding_box(x, max(rows - height, 0) // 2, max(columns - width, 0) // 2,
                               min(rows, height), min(columns, width))
    return pad_to_bounding_box(cut, max(height - rows, 0) // 2, max(width - columns, 0) // 2,
                               height, width)


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """(dy, dx) of images [n, h, w, c]: each pixel taken from the next; 0 in the last row, column.
    Raises ValueError: not four axes."""
    x = of_rank("image_gradients", image, (4,))
    rows, columns = x.spec.shape[1:3]
    dy, dx = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return (pad_to_bounding_box(dy, 0, 0, rows, columns),
            pad_to_bounding_box(dx, 0, 0, rows, columns))


def sobel_edges(image: TensorLike) -> Tensor:
    """[n, h, w, c, 2]: the slopes dy and dx of images [n, h, w, c] by Sobel's 3 x 3 filters.

    Differences of the pixels on both sides, weighted 1, 2, 1 across; images are reflected at their
    borders.

    Raises ValueError: not four axes;
    InvalidArgumentError: not floating, or fewer than 2 rows or columns."""
    x = of_rank("sobel_edges", image, (4,))
    if not x.dtype.is_floating or min(x.spec.shape[1:3]) < 2:
        raise InvalidArgumentError(f"sobel_edges takes floating images of at least 2 x 2 pixels; "
                                   f"got {x.spec}")
    whole: Any = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    # Each 3 x 3 filter is a column times a row: two sums of three instead of nine products.
    across = whole[:, :, :-2] + 2 * whole[:, :, 1:-1] + whole[:, :, 2:]
    along = whole[:, :-2] + 2 * whole[:, 1:-1] + whole[:, 2:]
    return stack_(across[:, 2:] - across[:, :-2], along[:, :, 2:] - along[:, :, :-2], axis=4)


# ---------------------------------------------------------------- patches
def _middle(name: str, values: Sequence[int]) -> tuple[int, int]:
    numbers = as_ints(values, f"extract_patches: {name}")
    if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1 or min(numbers) < 1:
        raise InvalidArgumentError(f"extract_patches: {name} must be [1, rows, columns, 1], "
                                   f"positive; got {list(numbers)}")
    return numbers[1], numbers[2]


def extract_patches(images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str,
                    name: str | None = None) -> Tensor:
    """[n, rows, columns, patch]: the windows of images [n, h, w, c], each laid out flat.

    Args:
        sizes, strides, rates: [1, rows, columns, 1] of a window, between windows, and between the
            pixels of a window.
        padding: "VALID" or "SAME".

    Raises ValueError: not four axes, or another padding;
    InvalidArgumentError: sizes, strides or rates of another form."""
    x = of_rank("extract_patches", images, (4,))
    size, steps, apart = (_middle(name, values) for name, values in (
        ("sizes", sizes), ("strides", strides), ("rates", rates)))
    kind = str(padding).upper()
    if kind not in ("VALID", "SAME"):
        raise ValueError("extract_patches: padding must be 'VALID' or 'SAME'; got "
                         f"{shown(padding)}")
    pads = windows.padding(kind, x.spec.shape[1:3], size, steps, apart)
    return patches_(x, sizes=size, strides=steps, rates=apart, pads=pads)

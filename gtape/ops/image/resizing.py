"""Images resampled to another size: each axis is multiplied by a matrix of weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.image.geometry import pad_to_bounding_box
from gtape.ops.indexing.gathering import gather_
from gtape.ops.linalg.products import matmul_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_


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


def _triangle(t: np.ndarray) -> np.ndarray:
    return np.maximum(1 - t, 0)


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


def _gaussian(t: np.ndarray) -> np.ndarray:
    return np.where(t < 1.5, np.exp(-(t**2) / (2 * 0.5**2)), 0.0)


_KERNELS: dict[str, Kernel] = {
    "bilinear": _triangle, "bicubic": _cubic(0, 0.5), "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5), "gaussian": _gaussian, "mitchellcubic": _cubic(1 / 3, 1 / 3)}
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
    width = max(scale, 1.0) if antialias else 1.0
    centres = (np.arange(after) + 0.5) * scale - 0.5
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
    y = matmul_(matrix, reshape_(x, shape=rows))
    return reshape_(y, shape=(*shape[:axis], length, *shape[axis + 1:]))


def _kept_aspect(height: int, width: int, size: tuple[int, ...]) -> tuple[int, int]:
    factor = min(size[0] / height, size[1] / width)
    return max(round(factor * height), 1), max(round(factor * width), 1)


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

    Raises:
        ValueError: an unknown method, or no images.
        InvalidArgumentError: `size` does not hold two positive integers.
    """
    x = convert(images)
    kind = getattr(method, "value", method)
    kind = kind.lower() if isinstance(kind, str) else ""
    if kind not in METHODS:
        raise ValueError(f"resize: the method must be one of {', '.join(METHODS)}; got "
                         f"{shown(method)}")
    if x.ndim not in (3, 4):
        raise ValueError(f"resize takes images [n, h, w, c] or [h, w, c]; got {x.spec}")
    wanted = as_ints(size, "resize: size")
    if len(wanted) != 2 or min(wanted) < 1:
        raise InvalidArgumentError(f"resize: size must be two positive integers (height, width); "
                                   f"got {list(wanted)}")
    shape = x.spec.shape
    if max(wanted) >= 2 ** 31:
        raise InvalidArgumentError(f"resize: height and width must be below 2**31; got "
                                   f"{list(wanted)}")
    batch = x if x.ndim == 4 else reshape_(x, shape=(1, *shape))
    _, height, width, _ = batch.spec.shape
    if not height or not width:
        raise InvalidArgumentError(f"resize: the images must have pixels; got {x.spec}")
    if preserve_aspect_ratio:
        wanted = _kept_aspect(height, width, wanted)
    y = batch if kind == "nearest" else cast(batch, float32)
    with room_for("resize", Spec((shape[0], *wanted, shape[-1]), y.dtype)):
        y = _along(_along(y, 1, wanted[0], kind, antialias), 2, wanted[1], kind, antialias)
    return y if x.ndim == 4 else reshape_(y, shape=y.spec.shape[1:])


def resize_with_pad(image: TensorLike, target_height: int, target_width: int,
                    method: str = "bilinear", antialias: bool = False) -> Tensor:
    """The largest image of the same proportions that fits into the target, zeros around it.

    Raises:
        ValueError: a target below 1, an unknown method, or no images.
    """
    x = convert(image)
    height = as_int(target_height, "resize_with_pad: target_height")
    width = as_int(target_width, "resize_with_pad: target_width")
    if x.ndim not in (3, 4) or min(height, width) < 1:
        raise ValueError(f"resize_with_pad takes images [n, h, w, c] or [h, w, c] and a positive "
                         f"target; got {x.spec} and {height} x {width}")
    rows, columns = x.spec.shape[-3:-1]
    ratio = max(columns / width, rows / height)
    size = (math.floor(rows / ratio), math.floor(columns / ratio))
    y = resize(x, size, method, antialias=antialias)
    top, left = (height - rows / ratio) / 2, (width - columns / ratio) / 2
    return pad_to_bounding_box(y, max(math.floor(top), 0), max(math.floor(left), 0), height,
                               width)

"""ssim: how alike two images are in brightness, contrast and structure (Wang et al. 2004)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_int
from gtape.ops.elementwise.scalars import square
from gtape.ops.image.adjustments import convert_image_dtype
from gtape.ops.nn.convolution import depthwise_conv2d
from gtape.ops.reductions.reductions import reduce_mean_
from gtape.ops.shape.layout import reshape, reshape_


def _window(size: int, sigma: float, channels: int) -> np.ndarray:
    """[size, size, channels, 1]: a Gaussian whose entries add up to 1."""
    line = np.exp(-(np.arange(size) - (size - 1) / 2) ** 2 / (2 * sigma ** 2))
    # A product of two lines, normalised once.
    square = np.outer(line, line) / line.sum() ** 2
    return np.tile(square[:, :, None, None], (1, 1, channels, 1)).astype(np.float32)


def _pair(img1: TensorLike, img2: np.ndarray, size: int) -> tuple[Tensor, Tensor]:
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
    over all windows and channels. Differentiable in both.

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
    x, y = _pair(img1, img2, size)
    window = convert(_window(size, sigma, x.spec.shape[3]), None, x._t.device)

    def mean(values: Tensor) -> Tensor:
        return depthwise_conv2d(values, window, [1, 1, 1, 1], "VALID")

    mx, my = mean(x), mean(y)
    both, each = mx * my * 2.0, square(mx) + square(my)
    shared = mean(x * y) * 2.0 - both
    # Var x + Var y in one convolution, since only the sum is needed.
    spread = mean(square(x) + square(y)) - each
    likeness = (both + c1) / (each + c1) * ((shared + c2) / (spread + c2))
    result = reduce_mean_(likeness, axis=(3,) if return_index_map else (1, 2, 3))
    return reshape_(result, shape=(*given.spec.shape[:-3], *result.spec.shape[1:]))

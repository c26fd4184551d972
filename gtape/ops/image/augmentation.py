"""Images changed at random: flips, crops, brightness, contrast and colour.

Each is a function of its source of random numbers: those of `tf.image.random_…` draw from the
stream of the seed, those of `tf.image.stateless_random_…` by the two numbers of `seed` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_ints
from gtape.ops.elementwise import scalars as s
from gtape.ops.image import geometry
from gtape.ops.image.adjustments import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
)
from gtape.ops.image.adjustments import images as of_rank
from gtape.ops.indexing.gathering import gather_
from gtape.ops.random.draws import drawn
from gtape.ops.random.functions import Source, stateless, stream, uniform
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_


# ---------------------------------------------------------------- what is drawn
def _flipped(name: str, image: Tensor, source: Source, flip: Callable[[Any], Tensor]) -> Tensor:
    """Each image flipped or not, with equal chances."""
    x = of_rank(name, image)
    count = x.spec.shape[:1] if x.ndim == 4 else ()
    turned = s.less(uniform(source, count, 0.0, 1.0, dtypes.float32), 0.5)
    if count:
        turned = reshape_(turned, shape=(*count, 1, 1, 1))
    return s.where(turned, flip(x), x)


def _bounds(name: str, lower: float, upper: float) -> tuple[float, float]:
    low, high = as_float(lower, f"{name}: lower"), as_float(upper, f"{name}: upper")
    if not 0 <= low < high:
        raise ValueError(f"{name}: lower must be at least 0 and below upper; got {low} and {high}")
    return low, high


def _largest(name: str, max_delta: float, most: float = np.inf) -> float:
    number = as_float(max_delta, f"{name}: max_delta")
    if not 0 <= number <= most:
        raise ValueError(f"{name}: max_delta must lie in [0, {most}]; got {number}")
    return number


def _within(source: Source, low: float, high: float) -> Tensor:
    return uniform(source, (), low, high, dtypes.float32)


def _around(source: Source, most: float) -> Any:
    return _within(source, -most, most) if most else 0.0


def _crop(value: Tensor, size: Sequence[int], source: Source) -> Tensor:
    """A block of `size` anywhere in `value`, each place with the same chance."""
    x, wanted = convert(value), as_ints(size, "random_crop: size")
    shape = x.spec.shape
    if len(wanted) != len(shape) or any(not 0 <= m <= n for n, m in zip(shape, wanted)):
        raise InvalidArgumentError(f"random_crop: size must be a block of the value {x.spec}; got "
                                   f"{list(wanted)}")
    free = np.array([n - m + 1 for n, m in zip(shape, wanted)], np.float64)
    share = drawn("uniform", source(len(free)), (len(free),), x._t.device.typed(dtypes.float64),
                  low=0.0, high=1.0)
    starts: Any = cast(s.floor(s.multiply(share, free)), dtypes.int64)
    for axis, (length, kept) in enumerate(zip(shape, wanted)):
        if kept < length:
            steps = convert(np.arange(kept, dtype=np.int64), None, x._t.device)
            x = gather_(x, s.add(starts[axis], steps), axis=axis)
    return x


# ---------------------------------------------------------------- from a stream
def random_flip_left_right(image: Tensor, seed: int | None = None) -> Tensor:
    """The columns in reverse order or not, with equal chances; each image of a batch by itself.

    Raises:
        ValueError: not three or four axes.
    """
    return _flipped("random_flip_left_right", image, stream(seed), geometry.flip_left_right)


def random_flip_up_down(image: Tensor, seed: int | None = None) -> Tensor:
    """The rows in reverse order or not, with equal chances; each image of a batch by itself.

    Raises:
        ValueError: not three or four axes.
    """
    return _flipped("random_flip_up_down", image, stream(seed), geometry.flip_up_down)


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a number in [-max_delta, max_delta).

    Raises:
        ValueError: a negative max_delta.
    """
    return adjust_brightness(image, _around(stream(seed), _largest("random_brightness", max_delta)))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None,
                    ) -> Tensor:
    """`adjust_contrast` by a factor in [lower, upper).

    Raises:
        ValueError: not 0 <= lower < upper.
    """
    low, high = _bounds("random_contrast", lower, upper)
    return adjust_contrast(image, _within(stream(seed), low, high))


def random_hue(image: TensorLike, max_delta: Any, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a number in [-max_delta, max_delta).

    Raises:
        ValueError: max_delta outside [0, 0.5].
    """
    return adjust_hue(image, _around(stream(seed), _largest("random_hue", max_delta, 0.5)))


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None,
                      ) -> Tensor:
    """`adjust_saturation` by a factor in [lower, upper).

    Raises:
        ValueError: not 0 <= lower < upper.
    """
    low, high = _bounds("random_saturation", lower, upper)
    return adjust_saturation(image, _within(stream(seed), low, high))


def random_crop(value: Tensor, size: Any, seed: int | None = None, name: str | None = None,
                ) -> Tensor:
    """A block of `size` at a random place of `value`.

    Raises:
        InvalidArgumentError: the value has no such block.
    """
    return _crop(value, size, stream(seed))


# ---------------------------------------------------------------- by the seed alone
def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """`random_flip_left_right` as a pure function of the two numbers in `seed`."""
    return _flipped("stateless_random_flip_left_right", image,
                    stateless("stateless_random_flip_left_right", seed),
                    geometry.flip_left_right)


def stateless_random_flip_up_down(image: Tensor, seed: TensorLike) -> Tensor:
    """`random_flip_up_down` as a pure function of the two numbers in `seed`."""
    return _flipped("stateless_random_flip_up_down", image,
                    stateless("stateless_random_flip_up_down", seed), geometry.flip_up_down)


def stateless_random_brightness(image: TensorLike, max_delta: float, seed: TensorLike) -> Tensor:
    """`random_brightness` as a pure function of the two numbers in `seed`."""
    source = stateless("stateless_random_brightness", seed)
    return adjust_brightness(image, _around(source, _largest("random_brightness", max_delta)))


def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: TensorLike,
                              ) -> Tensor:
    """`random_contrast` as a pure function of the two numbers in `seed`."""
    low, high = _bounds("stateless_random_contrast", lower, upper)
    source = stateless("stateless_random_contrast", seed)
    return adjust_contrast(image, _within(source, low, high))


def stateless_random_hue(image: TensorLike, max_delta: Any, seed: Any) -> Tensor:
    """`random_hue` as a pure function of the two numbers in `seed`."""
    source = stateless("stateless_random_hue", seed)
    return adjust_hue(image, _around(source, _largest("random_hue", max_delta, 0.5)))


def stateless_random_saturation(image: TensorLike, lower: Any, upper: Any, seed: Any = None,
                                ) -> Tensor:
    """`random_saturation` as a pure function of the two numbers in `seed`."""
    low, high = _bounds("stateless_random_saturation", lower, upper)
    source = stateless("stateless_random_saturation", seed)
    return adjust_saturation(image, _within(source, low, high))


def stateless_random_crop(value: Tensor, size: Any, seed: TensorLike, name: str | None = None,
                          ) -> Tensor:
    """`random_crop` as a pure function of the two numbers in `seed`."""
    return _crop(value, size, stateless("stateless_random_crop", seed))

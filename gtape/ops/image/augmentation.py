"""Images changed at random: flips, crops, brightness, contrast and colour.

Each is a function of its source of random numbers: those of `tf.image.random_…` draw from the
stream of the seed, those of `tf.image.stateless_random_…` by the two numbers of `seed` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_ints, named
from gtape.ops.elementwise import scalars as s
from gtape.ops.image import adjustments, geometry
from gtape.ops.indexing.gathering import gather_
from gtape.ops.random.draws import drawn
from gtape.ops.random.functions import Source, stateless, stream, uniform
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_

_Function: TypeAlias = Callable[..., Tensor]


def _named(what: str, streamed: _Function, by_seed: _Function, doc: str, raises: str,
           ) -> tuple[_Function, _Function]:
    """random_`what` and stateless_random_`what`, the same change from two sources."""
    public = f"random_{what}"
    return (named(streamed, public, f"{doc}\n\n    Raises:\n        {raises}\n    "),
            named(by_seed, f"stateless_{public}",
                  f"`{public}` as a pure function of the two numbers in `seed`. Raises as it."))


# ---------------------------------------------------------------- flips
def _flips(what: str, flip: _Function, lines: str) -> tuple[_Function, _Function]:
    def change(name: str, image: TensorLike, source: Source) -> Tensor:
        x = adjustments.of_rank(name, image)
        count = x.spec.shape[:1] if x.ndim == 4 else ()
        turned = s.less(uniform(source, count, 0.0, 1.0, dtypes.float32), 0.5)
        if count:
            turned = reshape_(turned, shape=(*count, 1, 1, 1))
        return s.where(turned, flip(x), x)

    def streamed(image: TensorLike, seed: int | None = None) -> Tensor:
        return change(f"random_{what}", image, stream(seed))

    def by_seed(image: TensorLike, seed: TensorLike) -> Tensor:
        name = f"stateless_random_{what}"
        return change(name, image, stateless(name, seed))

    return _named(what, streamed, by_seed, f"The {lines} in reverse order or not, with equal "
                  "chances; each image of a batch by itself.",
                  "ValueError: not three or four axes.")


random_flip_left_right, stateless_random_flip_left_right = _flips(
    "flip_left_right", geometry.flip_left_right, "columns")
random_flip_up_down, stateless_random_flip_up_down = _flips(
    "flip_up_down", geometry.flip_up_down, "rows")


# ---------------------------------------------------------------- brightness, contrast and colour
def _shifts(what: str, adjust: _Function, most: float, refused: str) -> tuple[_Function, _Function]:
    def change(name: str, image: TensorLike, max_delta: TensorLike, source: Source) -> Tensor:
        largest = as_float(max_delta, f"{name}: max_delta")
        if not 0 <= largest <= most:
            raise ValueError(f"{name}: max_delta must lie in [0, {most}]; got {largest}")
        # An empty range has no number to draw, and changes nothing.
        return adjust(image, uniform(source, (), -largest, largest, dtypes.float32) if largest
                      else 0.0)

    def streamed(image: TensorLike, max_delta: TensorLike, seed: int | None = None) -> Tensor:
        return change(f"random_{what}", image, max_delta, stream(seed))

    def by_seed(image: TensorLike, max_delta: TensorLike, seed: TensorLike) -> Tensor:
        name = f"stateless_random_{what}"
        return change(name, image, max_delta, stateless(name, seed))

    return _named(what, streamed, by_seed,
                  f"`adjust_{what}` by a number in [-max_delta, max_delta).",
                  f"ValueError: {refused}.")


def _factors(what: str, adjust: _Function) -> tuple[_Function, _Function]:
    def change(name: str, image: TensorLike, lower: TensorLike, upper: TensorLike,
               source: Source) -> Tensor:
        low, high = as_float(lower, f"{name}: lower"), as_float(upper, f"{name}: upper")
        if not 0 <= low < high:
            raise ValueError(f"{name}: lower must be at least 0 and below upper; got {low} and "
                             f"{high}")
        return adjust(image, uniform(source, (), low, high, dtypes.float32))

    def streamed(image: TensorLike, lower: TensorLike, upper: TensorLike,
                 seed: int | None = None) -> Tensor:
        return change(f"random_{what}", image, lower, upper, stream(seed))

    # TensorFlow's saturation has seed=None, which it then refuses, as both do here.
    def by_seed(image: TensorLike, lower: TensorLike, upper: TensorLike,
                seed: Any = None) -> Tensor:
        name = f"stateless_random_{what}"
        return change(name, image, lower, upper, stateless(name, seed))

    return _named(what, streamed, by_seed, f"`adjust_{what}` by a factor in [lower, upper).",
                  "ValueError: not 0 <= lower < upper.")


random_brightness, stateless_random_brightness = _shifts(
    "brightness", adjustments.adjust_brightness, np.inf, "a negative max_delta")
# Half a turn of the colour wheel reaches all of it.
random_hue, stateless_random_hue = _shifts(
    "hue", adjustments.adjust_hue, 0.5, "max_delta outside [0, 0.5]")
random_contrast, stateless_random_contrast = _factors("contrast", adjustments.adjust_contrast)
random_saturation, stateless_random_saturation = _factors(
    "saturation", adjustments.adjust_saturation)


# ---------------------------------------------------------------- crops
def _crop(value: TensorLike, size: Sequence[int], source: Source) -> Tensor:
    x, wanted = convert(value), as_ints(size, "random_crop: size")
    shape = x.spec.shape
    if len(wanted) != len(shape) or any(not 0 <= m <= n for n, m in zip(shape, wanted)):
        raise InvalidArgumentError(f"random_crop: size must be a block of the value {x.spec}; got "
                                   f"{list(wanted)}")
    free = np.array([n - m + 1 for n, m in zip(shape, wanted)], np.float64)
    # float64, since float32 has too few numbers for the places of an axis above 2**24.
    share = drawn("uniform", source(len(free)), (len(free),), x._t.device.typed(dtypes.float64),
                  low=0.0, high=1.0)
    starts: Any = cast(s.floor(s.multiply(share, free)), dtypes.int64)
    for axis, (length, kept) in enumerate(zip(shape, wanted)):
        if kept < length:
            steps = convert(np.arange(kept, dtype=np.int64), None, x._t.device)
            x = gather_(x, s.add(starts[axis], steps), axis=axis)
    return x


def random_crop(value: TensorLike, size: Any, seed: int | None = None, name: str | None = None,
                ) -> Tensor:
    """A block of `size` at a random place of `value`, each place with the same chance.
    Raises InvalidArgumentError: the value has no such block."""
    return _crop(value, size, stream(seed))


def stateless_random_crop(value: TensorLike, size: Any, seed: TensorLike, name: str | None = None,
                          ) -> Tensor:
    """`random_crop` as a pure function of the two numbers in `seed`. Raises as it."""
    return _crop(value, size, stateless("stateless_random_crop", seed))

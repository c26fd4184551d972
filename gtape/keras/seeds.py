"""Where layers and initializers get their random numbers: Philox streams with small seeds.

A seed given makes the draw a pure function of it. Seeds not given come from Python's `random`
module, which `keras.utils.set_random_seed` makes deterministic.
"""

from __future__ import annotations

import random
from typing import Any

from gtape.core.placement import current_device
from gtape.numerics.philox import Key
from gtape.ops.random_streams import sample

_SALT = 0x6B657261


def fresh_seed() -> int:
    """A seed nobody chose."""
    return random.randint(1, 10**9)


class SeedGenerator:
    """A stream of draws: the same seed gives the same stream.

    Args:
        seed: an int; drawn when None.
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None and not isinstance(seed, int):
            raise ValueError(f"a seed must be an int or None; got {seed!r}")
        self.seed = fresh_seed() if seed is None else seed
        self.count = 0

    def next(self) -> Key:
        """The key of the next draw."""
        self.count += 1
        return key_of(self.seed, self.count)


def key_of(seed: Any, count: int = 0) -> Key:
    """The Philox key of draw number `count` of a seed. A SeedGenerator gives its own next one."""
    if isinstance(seed, SeedGenerator):
        return seed.next()
    number = int(seed)
    mixed = _SALT ^ (number >> 32) ^ (count * 0x9E3779B9)
    return number & 0xFFFFFFFF, mixed & 0xFFFFFFFF


def draw(kind: str, key: Key, shape: Any, dtype: Any, *parameters: float) -> Any:
    """An array of `distributions.<kind>` on the current device."""
    return sample(kind, key, 0, shape, current_device().xp, dtype, *parameters)

"""Where layers and initializers get their random numbers: Philox streams with small seeds.

A seed given makes the draw a pure function of it. Seeds not given come from Python's `random`
module, which `keras.utils.set_random_seed` makes deterministic.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import CPU, ArrayType
from gtape.core.dtypes import DType, int64
from gtape.core.op import case
from gtape.core.placement import current_device
from gtape.core.spec import Spec
from gtape.core.state import paused, tracer_now
from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.kinds.array_cell import ArrayCell
from gtape.kinds.primitive import primitive
from gtape.numerics.philox import Key
from gtape.ops.draws import drawn
from gtape.ops.random_streams import Position, signed
from gtape.ops.scalars import add

_SALT = 0x6B657261


def fresh_seed() -> int:
    """A seed nobody chose."""
    return random.randint(1, 10**9)


class _SeedCell(ArrayCell):
    """The seed and count of a SeedGenerator, for traces."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        super().__init__()
        self._numbers = numbers

    @property
    def name(self) -> str:
        return "seed_generator"

    def _array(self) -> np.ndarray:
        return self._numbers

    def _type(self) -> ArrayType:
        return CPU.typed(int64)


class SeedGenerator:
    """A stream of draws: the same seed gives the same stream.

    Args:
        seed: an int; drawn when None.
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None and not isinstance(seed, int):
            raise ValueError(f"a seed must be an int or None; got {shown(seed)}")
        self._numbers = np.array([signed(fresh_seed() if seed is None else seed), 0], np.int64)
        self._cell = _SeedCell(self._numbers)

    @property
    def seed(self) -> int:
        return int(self._numbers[0])

    @seed.setter
    def seed(self, value: int) -> None:
        self._numbers[0] = signed(value)

    @property
    def count(self) -> int:
        """How often it was drawn from."""
        return int(self._numbers[1])

    @count.setter
    def count(self, value: int) -> None:
        self._numbers[1] = value

    def next(self) -> Position:
        """The position of the next draw; in a traced function it is found at every call."""
        if tracer_now() is None:
            self._numbers[1] += 1
            return _key(*self._numbers.tolist()), 0
        with paused():
            state = add(self._cell._value, convert(np.array([0, 1], np.int64), None, CPU))
            self._cell._value = state
            return seeded_position_(state)


def _key(seed: int, count: int) -> Key:
    """The Philox key of draw number `count` of a seed."""
    mixed = _SALT ^ (seed >> 32) ^ (count * 0x9E3779B9)
    return seed & 0xFFFFFFFF, mixed & 0xFFFFFFFF


@primitive(nondifferentiable=True)
def seeded_position_(xp: Any, state: Any) -> Any:
    """The position int64[4] of draw number state[1] of the seed state[0]."""
    return xp.asarray(np.array([*_key(*state.tolist()), 0, 0], np.int64))


@seeded_position_.infer
def _(state: Spec) -> Spec:
    return state.reshaped((4,))


seeded_position_.cases = [case(np.array([5, 3], np.int64))]


def draw(kind: str, seed: Any, shape: Any, dtype: DType, **parameters: float) -> Tensor:
    """Numbers of a distribution on the current device; `seed` is an int or a SeedGenerator."""
    position = seed.next() if isinstance(seed, SeedGenerator) else (_key(int(seed), 0), 0)
    return drawn(kind, position, tuple(shape), current_device().typed(dtype), **parameters)

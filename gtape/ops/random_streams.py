"""Where the random numbers of `tf.random` come from: one Philox stream for each op seed.

`set_seed` gives the global seed and starts every stream again. A stream's key is a function of the
global seed and the op seed, so streams are independent; its offset counts the values drawn. Without
a global seed, ops with a seed use 0 in its place and the others a seed from the operating system.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.numerics import distributions, philox, rejection

Key = tuple[int, int]

_MASK64 = 0xFFFFFFFFFFFFFFFF
_HOME: Key = (0x67746170, 0x65206B79)


def mixed(*numbers: int) -> Key:
    """A Philox key that depends on every bit of the numbers."""
    key = _HOME
    for number in numbers:
        made = philox.words(np, key, number & _MASK64, 2)
        key = (int(made[0]), int(made[1]))
    return key


class Streams:
    """The streams of one global seed (None: unpredictable)."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._lock = threading.Lock()
        self._base = secrets.randbits(64) if seed is None else seed
        self._streams: dict[int | None, list[Any]] = {}

    def take(self, op_seed: int | None, count: int) -> tuple[Key, int]:
        """The key and the offset for `count` values."""
        with self._lock:
            stream = self._streams.get(op_seed)
            if stream is None:
                stream = self._streams[op_seed] = [self._key(op_seed), 0]
            offset = stream[1]
            stream[1] = offset + count
            return stream[0], offset

    def _key(self, op_seed: int | None) -> Key:
        if op_seed is None:
            return mixed(0, self._base)
        return mixed(1, 0 if self.seed is None else self.seed, op_seed)


_current = [Streams()]


def set_seed(seed: int | None) -> None:
    """Set the global seed: what `tf.random` draws from here on repeats at the next same call.

    None makes the numbers unpredictable again.

    Raises:
        TypeError: `seed` is no integer.
    """
    from gtape.ops.arguments import as_int

    _current[0] = Streams(None if seed is None else as_int(seed, "set_seed: seed"))


def sample(distribution: str, key: Key, offset: int, shape: Sequence[int], xp: Any,
           **parameters: Any) -> Any:
    """An array drawn by a function of `gtape.numerics.distributions` or `.rejection`."""
    function = getattr(distributions, distribution, None) or getattr(rejection, distribution)
    return function(xp, key, offset, tuple(shape), **parameters)


def draw(distribution: str, shape: Sequence[int], op_seed: int | None, xp: Any,
         **parameters: Any) -> Any:
    """`sample` from the stream of the op seed, which moves on."""
    key, offset = _current[0].take(op_seed, math.prod(shape))
    return sample(distribution, key, offset, shape, xp, **parameters)


def take(op_seed: int | None, count: int) -> tuple[Key, int]:
    """The key and the offset for `count` values of the stream of the op seed."""
    return _current[0].take(op_seed, count)

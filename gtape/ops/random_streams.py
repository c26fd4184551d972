"""Where the random numbers of `tf.random` come from: one Philox stream for each op seed.

`set_seed` gives the global seed and starts every stream again. With an op seed the Philox key is
the global seed (87654321 when there is none) and the upper half of the counter the op seed, as in
TensorFlow's kernels, so the first draw of uniform, normal and dropout from a seed gives the numbers
that TensorFlow gives on a CPU. Without an op seed the key depends on the global seed, or on the
operating system's randomness. The offset counts the values drawn.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.device import others, scope_of
from gtape.numerics import distributions, philox, rejection

Key = tuple[int, int]

_DEFAULT_SEED = 87654321
#: Distributions that read the whole 128-bit counter; others use its upper half themselves.
_COUNTED = ("uniform", "normal", "bernoulli")
_MASK32 = 0xFFFFFFFF
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
                start = 0 if op_seed is None else (op_seed & _MASK64) << 64
                stream = self._streams[op_seed] = [self._key(op_seed), start]
            offset = stream[1]
            stream[1] = offset + count
            return stream[0], offset

    def _key(self, op_seed: int | None) -> Key:
        if op_seed is None:
            return mixed(0, self._base)
        seed = _DEFAULT_SEED if self.seed is None else self.seed
        return seed & _MASK32, seed >> 32 & _MASK32


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
           *arguments: Any, **parameters: Any) -> Any:
    """An array drawn by a function of `gtape.numerics.distributions` or `.rejection`."""
    if distribution not in _COUNTED and offset >> 64:
        key, offset = mixed(*key, offset >> 64), offset & _MASK64
    if xp is not np:
        made = _by_kernel(distribution, xp, (key, offset, shape, *arguments), parameters)
        if made is not None:
            return made
    function = getattr(distributions, distribution, None) or getattr(rejection, distribution)
    with scope_of(xp):
        return function(xp, key, offset, tuple(shape), *arguments, **parameters)


def _by_kernel(distribution: str, xp: Any, arguments: tuple[Any, ...],
               parameters: dict[str, Any]) -> Any:
    """The same array in one launch; None where there is no kernel for it."""
    device = next((d for d in others if d.xp is xp), None)
    if device is None or device.executor is None:
        return None
    from gtape.devices.cuda.kernels.random_numbers import DISTRIBUTIONS

    if distribution not in DISTRIBUTIONS:
        return None
    with device.scope():
        return DISTRIBUTIONS[distribution](device.executor, *arguments, **parameters)


def take(op_seed: int | None, count: int) -> tuple[Key, int]:
    """The key and the offset for `count` values of the stream of the op seed."""
    return _current[0].take(op_seed, count)

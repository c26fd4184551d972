"""Where the random numbers of `tf.random` come from: one Philox stream for each op seed.

`set_seed` gives the global seed and starts every stream again. With an op seed the Philox key is
the global seed (87654321 when there is none) and the upper half of the counter the op seed, as in
TensorFlow's kernels, so the first draw of uniform, normal and dropout from a seed gives the numbers
that TensorFlow gives on a CPU. Without an op seed the key depends on the global seed, or on the
operating system's randomness. The offset counts the values drawn.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.buffers import ArrayState
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.device import CPU, ArrayModule, ArrayType, others, scope_of
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.locks import lock
from gtape.core.tensor import Tensor
from gtape.numerics import distributions, rejection
from gtape.ops.arguments import as_int
from gtape.ops.elementwise.scalars import add

Key = tuple[int, int]
#: Where in a stream to draw: a Philox key and an offset; in a trace int64[4] with the same.
Position = tuple[Key, int] | Tensor

#: TensorFlow's, where an op has a seed and the program none.
_DEFAULT_SEED = 87654321
#: Distributions that read the whole 128-bit counter; others use its upper half themselves.
_COUNTED = ("uniform", "normal", "bernoulli")
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
#: The letters "gtape ky": the key under which keys are made.
_HOME: Key = (0x67746170, 0x65206B79)


def mixed(*numbers: int) -> Key:
    """A Philox key that depends on every bit of the numbers."""
    key = _HOME
    for number in numbers:
        # Philox mixes: each number is a counter under the key made so far.
        words = distributions.words(np, key, number & _MASK64, 2)
        key = (int(words[0]), int(words[1]))
    return key


class Streams:
    """The streams of a global seed (None: unpredictable).

    A stream's position is an array: two words of the Philox key, and the two halves of the offset.
    It stays the same array for good, so that compiled programs can hold it.
    """

    def __init__(self) -> None:
        self._lock = lock()
        self._positions: dict[int | None, np.ndarray] = {}
        self.reseed(None)

    def reseed(self, seed: int | None) -> None:
        """Start every stream again, under another seed."""
        with self._lock:
            self.seed = seed
            self._base = secrets.randbits(64) if seed is None else seed
            for op_seed, position in self._positions.items():
                # In place: compiled programs hold these arrays.
                position[:] = self._start(op_seed)

    def _start(self, op_seed: int | None) -> list[int]:
        """The position before the first draw."""
        if op_seed is None:
            return [*mixed(0, self._base), 0, 0]
        seed = _DEFAULT_SEED if self.seed is None else self.seed
        # TensorFlow's GuardedPhiloxRandom: seed is the key, seed2 the upper half of the counter.
        return [seed & _MASK32, seed >> 32 & _MASK32, 0, signed(op_seed)]

    def position(self, op_seed: int | None) -> np.ndarray:
        """The array with the position of a stream."""
        place = self._positions.get(op_seed)
        if place is None:
            place = self._positions[op_seed] = np.array(self._start(op_seed), np.int64)
        return place

    def take(self, op_seed: int | None, count: int) -> tuple[Key, int]:
        """The key and the offset for `count` values."""
        with self._lock:
            position = self.position(op_seed)
            key, offset = key_and_offset(position)
            after = offset + count
            position[2:] = signed(after), signed(after >> 64)
            return key, offset

    def kept(self) -> dict[str, object]:
        """What JSON can hold of the seed, and of the streams that were drawn from."""
        with self._lock:
            used = [[op_seed, *position.tolist()] for op_seed, position in self._positions.items()
                    if position.tolist() != self._start(op_seed)]  # the others start there anyway
            return {"seed": self.seed, "base": self._base, "streams": used}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on where the streams were when `kept` was made."""
        used = [(op_seed, np.array(position, np.int64).reshape(4))
                for op_seed, *position in kept["streams"]]
        base = int(kept["base"])
        # Before the base, which `reseed` draws anew; streams not in `kept` start again.
        self.reseed(kept["seed"])
        self._base = base
        with self._lock:
            for op_seed, position in self._positions.items():
                position[:] = self._start(op_seed)
            for op_seed, position in used:
                self.position(op_seed)[:] = position


def signed(number: int) -> int:
    """The int64 of the lowest 64 bits."""
    wrapped = number & _MASK64
    return wrapped - 2 ** 64 if wrapped >= 2 ** 63 else wrapped


def key_and_offset(position: np.ndarray) -> tuple[Key, int]:
    """The Philox key and the offset that a position stands for."""
    first, second, low, high = position.tolist()
    return (first, second), low & _MASK64 | (high & _MASK64) << 64


streams = Streams()


class StreamState(ArrayState):
    """The position of a stream, for traces."""

    __slots__ = ("_op_seed",)

    def __init__(self, op_seed: int | None) -> None:
        super().__init__()
        self._op_seed = op_seed

    @property
    def name(self) -> str:
        return f"random stream {self._op_seed}"

    def _array(self) -> np.ndarray:
        return streams.position(self._op_seed)

    def _type(self) -> ArrayType:
        return CPU.typed(int64)


_states: dict[int | None, StreamState] = {}  # one per stream: draws of a trace share it


def take(op_seed: int | None, count: int) -> Position:
    """The position for `count` values of the stream of the op seed, which moves on by so many.

    In a traced function it is found at every call.

    Raises:
        InvalidArgumentError: more values than a tensor can have.
    """
    if count >= 2 ** 63:  # it becomes an int64 below
        raise InvalidArgumentError(f"a tensor must have fewer than 2**63 elements; got {count} "
                                   f"random numbers to draw")
    tracer = tracer_now()
    if tracer is None:
        return streams.take(op_seed, count)
    state = _states.setdefault(op_seed, StreamState(op_seed))
    position = state._value
    with paused():
        state._value = add(position, convert(np.array([0, 0, count, 0], np.int64), None, CPU))
    return position


def set_seed(seed: int | None) -> None:
    """Set the global seed: what `tf.random` draws from here on repeats at the next same call.

    None makes the numbers unpredictable again. In a traced function it takes effect while tracing.

    Raises:
        TypeError: `seed` is no integer.
    """
    streams.reseed(None if seed is None else as_int(seed, "set_seed: seed"))


def sample(distribution: str, key: Key, offset: int, shape: Sequence[int], xp: ArrayModule,
           *arguments: object, **parameters: object) -> Any:
    """An array drawn by a function of `gtape.numerics.distributions` or `.rejection`."""
    # The others count with 64 bits; what lies above them makes another key.
    if distribution not in _COUNTED and offset >> 64:
        key, offset = mixed(*key, offset >> 64), offset & _MASK64
    if xp is not np:
        y = _by_kernel(distribution, xp, (key, offset, shape, *arguments), parameters)
        if y is not None:
            return y
    function = getattr(distributions, distribution, None) or getattr(rejection, distribution)
    with scope_of(xp):
        return function(xp, key, offset, tuple(shape), *arguments, **parameters)


def _by_kernel(distribution: str, xp: ArrayModule, arguments: tuple[object, ...],
               parameters: dict[str, object]) -> Any:
    """The same array in one launch; None where there is no kernel for it."""
    device = next((d for d in others if d.xp is xp), None)
    if device is None or device.executor is None:
        return None
    from gtape.devices.cuda.kernels.random_numbers import DISTRIBUTIONS  # with a GPU alone

    if distribution not in DISTRIBUTIONS:
        return None
    with device.scope():
        return DISTRIBUTIONS[distribution](device.executor, *arguments, **parameters)

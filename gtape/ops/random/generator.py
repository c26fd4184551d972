"""Generator: a random source whose position is a Variable, so that it can be saved and copied."""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, host_value
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.random import functions
from gtape.ops.random.streams import Position, mixed
from gtape.ops.random.streams import signed as _signed
from gtape.ops.shape.identity import identity_
from gtape.ops.shape.packing import stack_
from gtape.trace.host_steps import symbolic

_MASK64 = 0xFFFFFFFFFFFFFFFF  # Python's integers do not wrap round at 64 bits


class Algorithm(enum.Enum):
    """Counter-based generators; gtape has Philox."""

    PHILOX = 1  # the numbers are TensorFlow's
    THREEFRY = 2
    AUTO_SELECT = 3


def _check_algorithm(alg: str | None) -> None:
    """Raises ValueError for an algorithm other than Philox."""
    name = alg.name if isinstance(alg, Algorithm) else alg
    if isinstance(name, str):
        name = name.upper()
    if name not in (None, 1, 3, "PHILOX", "AUTO_SELECT"):
        raise ValueError(f"the algorithm must be 'philox' or 'auto_select'; got {shown(alg)}")


def _state(key: int, counter: int) -> np.ndarray:
    # TensorFlow's layout of a Philox state: the counter first, then the key.
    return np.array([_signed(counter), _signed(counter >> 64), _signed(key)], np.int64)


def _state_array(state: TensorLike) -> np.ndarray:
    array = host_value(state, "state")
    if array.shape != (3,) or array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"a state must be three int64 numbers [counter, counter >> 64, "
                                   f"key]; got {array.dtype}{list(array.shape)}")
    return array.astype(np.int64)


def create_rng_state(seed: int, alg: str = "philox") -> Tensor:
    """The state int64[3] of a Generator made from `seed`."""
    _check_algorithm(alg)
    return convert(_state(as_int(seed, "create_rng_state: seed"), 0))


@primitive(nondifferentiable=True)
def position_of_state_(xp: ArrayModule, state: Array) -> Array:
    """The position int64[4] at which a Generator in this state draws."""
    low, high, key = (n & _MASK64 for n in state.tolist())
    # 4 sets generators apart: keys of other origin are mixed with 0, 2 and 3.
    return xp.asarray(np.array([*mixed(4, key), _signed(low), _signed(high)], np.int64))


position_of_state_.infer(lambda state: state.reshaped((4,)))


@primitive(nondifferentiable=True)
def skipped_state_(xp: ArrayModule, state: Array, *, count: int) -> Array:
    """The state of a Generator after `count` more values."""
    low, high, key = (n & _MASK64 for n in state.tolist())
    return xp.asarray(_state(key, (low | high << 64) + count))


skipped_state_.infer(lambda state, **_: state)


position_of_state_.cases = [case(np.array([5, 0, 7], np.int64))]
skipped_state_.cases = [case(np.array([-1, 0, 7], np.int64), count=3)]


class Generator:
    """Random tensors from a state of its own: a 128-bit counter and a key, in `state`.

    Make one with `Generator.from_seed(n)`, `from_state`, `from_key_counter` or
    `from_non_deterministic_state`.
    """

    def __init__(self, copy_from: Generator | None = None, state: TensorLike | None = None,
                 alg: str | None = None) -> None:
        _check_algorithm(alg)
        if copy_from is not None:
            if not isinstance(copy_from, Generator):
                raise TypeError(f"a Generator copies another one; got {shown(copy_from)}")
            state = copy_from.state
        if state is None:
            raise ValueError("a Generator needs a state; use Generator.from_seed(seed)")
        # TensorFlow's names, of the attribute too, by which checkpoints find it.
        self._state_var = Variable(_state_array(state), trainable=False, name="StateVar")

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """A generator that always gives the same sequence for `seed`."""
        return cls(state=_state(as_int(seed, "from_seed: seed"), 0), alg=alg)

    @classmethod
    def from_state(cls, state: TensorLike, alg: str | None = None) -> Generator:
        """A generator that goes on where another was at `state`."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: int, counter: TensorLike, alg: str | None = None) -> Generator:
        """A generator of the given key, at the given counter (int64[2] or one number)."""
        return cls(state=_state(as_int(key, "key"), _counter_number(counter)), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator with an unpredictable key."""
        # From the operating system: no seed of the program repeats it.
        return cls(state=_state(secrets.randbits(64), 0), alg=alg)

    @property
    def state(self) -> Variable:
        """int64[3]: the counter's low and high 64 bits, and the key."""
        return self._state_var

    @property
    def key(self) -> Tensor:
        return self._now()[2]

    @property
    def algorithm(self) -> int:
        """1: Philox."""
        return Algorithm.PHILOX.value

    def _now(self) -> Tensor:
        return self._state_var._resource_()._value

    def _numbers(self) -> np.ndarray:
        return self._now()._peek()

    def _set(self, state: TensorLike) -> None:
        with paused():
            self._state_var.assign(state, read_value=False)  # nobody looks at what it gives

    def _take(self, count: int) -> Position:
        """A source of `random_ops`: draw at the counter, and move it on."""
        if tracer_now() is not None:
            with paused():
                state = self._now()
                self._set(skipped_state_(state, count=count))
                return position_of_state_(state)
        low, high, key = (int(n) & _MASK64 for n in self._numbers())
        counter = low | high << 64
        self._set(_state(key, counter + count))
        return mixed(4, key), counter

    def _drawn(self, draw: Callable[..., Tensor], *args: object) -> Tensor:
        """What `draw` draws here; where it refuses its arguments, nothing was drawn."""
        # A call that is refused leaves the sequence where it was.
        before = self._now()
        try:
            return draw(self._take, *args)
        except Exception:
            if tracer_now() is None:  # a trace draws only when it is called
                self._set(before)
            raise

    def reset(self, state: Tensor) -> None:
        """Go on from `state`."""
        self._set(state if symbolic(state) else _state_array(state))

    def reset_from_seed(self, seed: int) -> None:
        """Begin the sequence of `seed`."""
        self._set(_state(as_int(seed, "reset_from_seed: seed"), 0))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Go on with the given key, at the given counter."""
        self._set(_state(as_int(key, "key"), _counter_number(counter)))

    def skip(self, delta: int) -> Tensor:
        """Move the counter on by `delta` values; the state before."""
        before = identity_(self._now())  # a tensor of its own, not the Variable's value
        self._take(as_int(delta, "skip: delta"))
        return before

    def make_seeds(self, count: int = 1) -> Tensor:
        """int64[2, count]: seeds for the stateless functions, one in each column."""
        # TensorFlow's seeds have zeros in the second row.
        first = self._drawn(functions.full_integers, [count], dtypes.int64)
        return stack_(first, multiply(first, 0), axis=0)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators.

        Raises:
            NotTraceableError: in a traced function.
        """
        if tracer_now() is not None:
            raise NotTraceableError("Generator.split makes Variables, whose values a trace has not")
        keys = self.make_seeds(count).numpy()[0]  # the second row is zeros
        return [Generator.from_key_counter(int(key), 0) for key in keys]

    def normal(self, shape: IntsLike, mean: SupportsFloat = 0.0, stddev: SupportsFloat = 1.0,
               dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
        """As `tf.random.normal`."""
        return self._drawn(functions.normal, shape, mean, stddev, dtype)

    def truncated_normal(self, shape: object, mean: TensorLike = 0.0, stddev: object = 1.0,
                         dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
        """As `tf.random.truncated_normal`."""
        return self._drawn(functions.truncated_normal, shape, mean, stddev, dtype)

    def uniform(self, shape: IntsLike, minval: SupportsIndex = 0, maxval: object = None,
                dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
        """As `tf.random.uniform`."""
        return self._drawn(functions.uniform, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: IntsLike, dtype: DTypeLike = dtypes.uint64,
                         name: str | None = None) -> Tensor:
        """Integers over the whole range of `dtype`."""
        return self._drawn(functions.full_integers, shape, dtype)

    def binomial(self, shape: IntsLike, counts: SupportsFloat, probs: SupportsFloat,
                 dtype: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
        """Successes in `counts` trials of probability `probs`."""
        return self._drawn(functions.binomial, shape, counts, probs, dtype)


def _counter_number(counter: TensorLike) -> int:
    parts = host_value(counter, "counter").reshape(-1)
    if parts.size not in (1, 2) or parts.dtype.kind not in "iu":
        raise InvalidArgumentError(f"a counter must be one or two integers; got {shown(counter)}")
    return sum((int(n) & _MASK64) << 64 * i for i, n in enumerate(parts))


_global: list[Generator] = []  # filled at first use: an import draws no randomness


def get_global_generator() -> Generator:
    """The generator shared by the whole program, unpredictable unless one was set."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Replace the shared generator."""
    _global[:] = [generator]

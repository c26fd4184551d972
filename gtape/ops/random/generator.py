"""Generator: a random source whose position is a Variable, so that it can be saved and copied."""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, host_value
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.random import functions
from gtape.ops.random.streams import Position, mixed
from gtape.ops.random.streams import signed as _signed
from gtape.ops.shape.layout import identity_
from gtape.ops.shape.packing import stack_
from gtape.trace.host_callback import symbolic

_MASK64 = 0xFFFFFFFFFFFFFFFF


class Algorithm(enum.Enum):
    """Counter-based generators; gtape has Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def _check_algorithm(alg: Any) -> None:
    """Raises ValueError for an algorithm other than Philox."""
    name = alg.name if isinstance(alg, Algorithm) else alg
    if isinstance(name, str):
        name = name.upper()
    if name not in (None, 1, 3, "PHILOX", "AUTO_SELECT"):
        raise ValueError(f"the algorithm must be 'philox' or 'auto_select'; got {shown(alg)}")


def _state(key: int, counter: int) -> np.ndarray:
    return np.array([_signed(counter), _signed(counter >> 64), _signed(key)], np.int64)


def _state_array(state: Any) -> np.ndarray:
    found = host_value(state, "state")
    if found.shape != (3,) or found.dtype.kind not in "iu":
        raise InvalidArgumentError(f"a state must be three int64 numbers [counter, counter >> 64, "
                                   f"key]; got {found.dtype}{list(found.shape)}")
    return found.astype(np.int64)


def create_rng_state(seed: Any, alg: Any = "philox") -> Tensor:
    """The state int64[3] of a Generator made from `seed`."""
    _check_algorithm(alg)
    return convert(_state(as_int(seed, "create_rng_state: seed"), 0))


@primitive(nondifferentiable=True)
def position_of_state_(xp: Any, state: Any) -> Any:
    """The position int64[4] at which a Generator in this state draws."""
    low, high, key = (n & _MASK64 for n in state.tolist())
    return xp.asarray(np.array([*mixed(4, key), _signed(low), _signed(high)], np.int64))


@position_of_state_.infer
def _(state: Spec) -> Spec:
    return state.reshaped((4,))


@primitive(nondifferentiable=True)
def skipped_state_(xp: Any, state: Any, *, count: int) -> Any:
    """The state of a Generator after `count` more values."""
    low, high, key = (n & _MASK64 for n in state.tolist())
    return xp.asarray(_state(key, (low | high << 64) + count))


@skipped_state_.infer
def _(state: Spec, *, count: int) -> Spec:
    return state


position_of_state_.cases = [case(np.array([5, 0, 7], np.int64))]
skipped_state_.cases = [case(np.array([-1, 0, 7], np.int64), count=3)]


class Generator:
    """Random tensors from a state of its own: a 128-bit counter and a key, in `state`.

    Make one with `Generator.from_seed(n)`, `from_state`, `from_key_counter` or
    `from_non_deterministic_state`.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None,
                 alg: Any = None) -> None:
        _check_algorithm(alg)
        if copy_from is not None:
            if not isinstance(copy_from, Generator):
                raise TypeError(f"a Generator copies another one; got {shown(copy_from)}")
            state = copy_from.state
        if state is None:
            raise ValueError("a Generator needs a state; use Generator.from_seed(seed)")
        self._state_var = Variable(_state_array(state), trainable=False, name="StateVar")

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator that always gives the same sequence for `seed`."""
        return cls(state=_state(as_int(seed, "from_seed: seed"), 0), alg=alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """A generator that goes on where another was at `state`."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """A generator of the given key, at the given counter (int64[2] or one number)."""
        return cls(state=_state(as_int(key, "key"), _counter_number(counter)), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator with an unpredictable key."""
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

    def _now(self) -> Any:
        return self._state_var._resource_()._value

    def _numbers(self) -> np.ndarray:
        return self._now()._peek()

    def _set(self, state: Any) -> None:
        with paused():
            self._state_var.assign(state, read_value=False)

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

    def _drawn(self, draw: Callable[..., Tensor], *args: Any) -> Tensor:
        """What `draw` draws here; where it refuses its arguments, nothing was drawn."""
        before = self._now()
        try:
            return draw(self._take, *args)
        except Exception:
            if tracer_now() is None:
                self._set(before)
            raise

    def reset(self, state: Any) -> None:
        """Go on from `state`."""
        self._set(state if symbolic(state) else _state_array(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Begin the sequence of `seed`."""
        self._set(_state(as_int(seed, "reset_from_seed: seed"), 0))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Go on with the given key, at the given counter."""
        self._set(_state(as_int(key, "key"), _counter_number(counter)))

    def skip(self, delta: Any) -> Tensor:
        """Move the counter on by `delta` values; the state before."""
        before = identity_(self._now())
        self._take(as_int(delta, "skip: delta"))
        return before

    def make_seeds(self, count: int = 1) -> Tensor:
        """int64[2, count]: seeds for the stateless functions, one in each column."""
        first = self._drawn(functions.full_integers, [count], dtypes.int64)
        return stack_(first, multiply(first, 0), axis=0)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators.

        Raises:
            NotTraceableError: in a traced function.
        """
        if tracer_now() is not None:
            raise NotTraceableError("Generator.split makes Variables, whose values a trace has not")
        keys = self.make_seeds(count).numpy()[0]
        return [Generator.from_key_counter(int(key), 0) for key in keys]

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
               name: str | None = None) -> Tensor:
        """As `tf.random.normal`."""
        return self._drawn(functions.normal, shape, mean, stddev, dtype)

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0,
                         dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
        """As `tf.random.truncated_normal`."""
        return self._drawn(functions.truncated_normal, shape, mean, stddev, dtype)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
                name: str | None = None) -> Tensor:
        """As `tf.random.uniform`."""
        return self._drawn(functions.uniform, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64,
                         name: str | None = None) -> Tensor:
        """Integers over the whole range of `dtype`."""
        return self._drawn(functions.full_integers, shape, dtype)

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32,
                 name: str | None = None) -> Tensor:
        """Successes in `counts` trials of probability `probs`."""
        return self._drawn(functions.binomial, shape, counts, probs, dtype)


def _counter_number(counter: Any) -> int:
    parts = host_value(counter, "counter").reshape(-1)
    if parts.size not in (1, 2) or parts.dtype.kind not in "iu":
        raise InvalidArgumentError(f"a counter must be one or two integers; got {shown(counter)}")
    return sum((int(n) & _MASK64) << 64 * i for i, n in enumerate(parts))


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """The generator shared by the whole program, unpredictable unless one was set."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Replace the shared generator."""
    _global[:] = [generator]

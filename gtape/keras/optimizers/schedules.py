"""Learning rates that change with the number of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.state import tracer_now
from gtape.core.symbols import SymbolicTensor
from gtape.core.tensor import Tensor
from gtape.ops.arguments import host_value


class LearningRateSchedule:
    """Base class: override `__call__(step)`, which gives the rate after `step` updates."""

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(step)")


#: The functions that formulas use, on Python numbers.
_ON_NUMBERS = SimpleNamespace(
    floor=math.floor, ceil=math.ceil, cos=math.cos, log=math.log, minimum=min, maximum=max,
    where=lambda condition, a, b: a if condition else b)


class _Formula(LearningRateSchedule):
    """A schedule that is a function of numbers: `_rate(step, m)`.

    `m` has the functions of `_ON_NUMBERS`; in a traced function those of traced arrays.
    """

    def __call__(self, step: Any) -> Tensor:
        if tracer_now() is not None:
            found = convert(step)
            if type(found) is SymbolicTensor:
                from gtape.keras.optimizers.traced import of_numbers

                return of_numbers(self._rate, found)
        return convert(np.float32(self._rate(float(host_value(step, "step")), _ON_NUMBERS)), None,
                       CPU)

    def _rate(self, step: Any, m: Any) -> Any:
        raise NotImplementedError


class ExponentialDecay(_Formula):
    """initial decay_rate^(step / decay_steps); with `staircase` the exponent is rounded down."""

    def __init__(self, initial_learning_rate: float, decay_steps: float, decay_rate: float,
                 staircase: bool = False, name: str = "ExponentialDecay") -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name
        _positive("decay_steps", decay_steps)

    def _rate(self, step: Any, m: Any) -> Any:
        turns = step / self.decay_steps
        return self.initial_learning_rate * self.decay_rate ** (
            m.floor(turns) if self.staircase else turns)


class InverseTimeDecay(_Formula):
    """initial / (1 + decay_rate step / decay_steps); `staircase` rounds the quotient down."""

    def __init__(self, initial_learning_rate: float, decay_steps: float, decay_rate: float,
                 staircase: bool = False, name: str = "InverseTimeDecay") -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name
        _positive("decay_steps", decay_steps)

    def _rate(self, step: Any, m: Any) -> Any:
        turns = step / self.decay_steps
        turns = m.floor(turns) if self.staircase else turns
        return self.initial_learning_rate / (1 + self.decay_rate * turns)


class PolynomialDecay(_Formula):
    """From initial to end in decay_steps, as (1 - step / decay_steps)^power.

    With `cycle` it begins again, over a multiple of decay_steps, whenever it has ended.
    """

    def __init__(self, initial_learning_rate: float, decay_steps: float,
                 end_learning_rate: float = 0.0001, power: float = 1.0, cycle: bool = False,
                 name: str = "PolynomialDecay") -> None:
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power = end_learning_rate, power
        self.cycle, self.name = cycle, name
        _positive("decay_steps", decay_steps)

    def _rate(self, step: Any, m: Any) -> Any:
        length = self.decay_steps
        if self.cycle:
            length = length * m.maximum(1, m.ceil(step / length))
        left = 1 - m.minimum(step, length) / length
        span = self.initial_learning_rate - self.end_learning_rate
        return span * left**self.power + self.end_learning_rate


class PiecewiseConstantDecay(_Formula):
    """values[0] up to step boundaries[0], then values[1] up to boundaries[1] …

    Raises:
        ValueError: there must be one value more than boundaries.
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float],
                 name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(f"PiecewiseConstantDecay takes one value more than boundaries; got "
                             f"{len(boundaries)} boundaries and {len(values)} values")
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def _rate(self, step: Any, m: Any) -> Any:
        rate = self.values[0]
        for boundary, value in zip(self.boundaries, self.values[1:]):
            rate = m.where(step > boundary, value, rate)
        return rate


class CosineDecay(_Formula):
    """Half a cosine from initial down to alpha initial, after a linear warm-up if asked for.

    Loshchilov & Hutter 2017, arXiv:1608.03983.

    Args:
        warmup_target: where the warm-up from initial leads, and the decay begins.
        warmup_steps: how many steps it takes.
    """

    def __init__(self, initial_learning_rate: float, decay_steps: float, alpha: float = 0.0,
                 name: str = "CosineDecay", warmup_target: float | None = None,
                 warmup_steps: int = 0) -> None:
        _positive("decay_steps", decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.alpha, self.name = alpha, name
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def _rate(self, step: Any, m: Any) -> Any:
        start = self.initial_learning_rate
        if self.warmup_target is None:
            return self._decayed(start, step, m)
        after = self._decayed(self.warmup_target, step - self.warmup_steps, m)
        if not self.warmup_steps:
            return after
        rising = start + (self.warmup_target - start) * step / self.warmup_steps
        return m.where(step < self.warmup_steps, rising, after)

    def _decayed(self, start: float, step: Any, m: Any) -> Any:
        cosine = _half_cosine(m.minimum(step, self.decay_steps) / self.decay_steps, m)
        return start * ((1 - self.alpha) * cosine + self.alpha)


class CosineDecayRestarts(_Formula):
    """Cosine decays one after another, each t_mul times longer and m_mul times higher.

    Loshchilov & Hutter 2017, arXiv:1608.03983.
    """

    def __init__(self, initial_learning_rate: float, first_decay_steps: float, t_mul: float = 2.0,
                 m_mul: float = 1.0, alpha: float = 0.0, name: str = "SGDRDecay") -> None:
        _positive("first_decay_steps", first_decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul, self.m_mul = t_mul, m_mul
        self.alpha, self.name = alpha, name

    def _rate(self, step: Any, m: Any) -> Any:
        turns = step / self.first_decay_steps
        if self.t_mul == 1:
            restarts = m.floor(turns)
            turns = turns - restarts
        else:
            growth = self.t_mul
            restarts = m.floor(m.log(1 - turns * (1 - growth)) / math.log(growth))
            turns = (turns - (1 - growth**restarts) / (1 - growth)) / growth**restarts
        height = self.m_mul**restarts * _half_cosine(turns, m)
        return self.initial_learning_rate * ((1 - self.alpha) * height + self.alpha)


def _half_cosine(turns: Any, m: Any) -> Any:
    return 0.5 * (1 + m.cos(math.pi * turns))


def _positive(name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be positive; got {value}")

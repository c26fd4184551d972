"""Ftrl: follow the regularised leader, for sparse linear models."""

from __future__ import annotations

from typing import Any

from gtape.keras.optimizers.optimizer import Optimizer


class Ftrl(Optimizer):
    """w = (clip(z, ±l1) - z) / (n^-p / rate + 2 l2), with n = Σ g² and z = Σ of g less the shifts.

    McMahan et al. 2013, "Ad click prediction: a view from the trenches" (KDD).

    Raises:
        ValueError: a negative strength or initial value, or a positive learning_rate_power.
    """

    slots = ("accumulator", "linear")

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
                 initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0,
                 l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0,
                 **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        numbers = (initial_accumulator_value, l1_regularization_strength,
                   l2_regularization_strength, l2_shrinkage_regularization_strength)
        if min(numbers) < 0 or learning_rate_power > 0:
            raise ValueError(f"Ftrl: initial_accumulator_value and the strengths must not be "
                             f"negative, learning_rate_power not positive; got {numbers}, "
                             f"{learning_rate_power}")
        self._strengths = numbers
        self.learning_rate_power, self.beta = learning_rate_power, beta
        self._initial = [initial_accumulator_value, 0.0]

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        _, l1, l2, shrinkage = self._strengths
        return (rate, real(-self.learning_rate_power), real(l1),
                real(2) * (real(l2) + real(self.beta) / (real(2) * rate)), real(2 * shrinkage))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, power, l1, l2, shrinkage = k
        n, z = slots
        before = n**power
        n += g * g
        after = n**power
        z += g + w * shrinkage - (after - before) / rate * w
        return w - (xp.clip(z, -l1, l1) - z) / (after / rate + l2)

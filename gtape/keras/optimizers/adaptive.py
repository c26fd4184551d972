"""Rates that adapt to the size of past gradients: Adagrad, RMSprop, Adadelta."""

from __future__ import annotations

from typing import Any

from gtape.keras.optimizers.optimizer import Optimizer


class Adagrad(Optimizer):
    """a += g²; w -= rate g / √(a + epsilon). Duchi, Hazan & Singer 2011 (JMLR 12)."""

    slots = ("accumulator",)

    def __init__(self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1,
                 epsilon: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        if initial_accumulator_value < 0:
            raise ValueError(f"initial_accumulator_value must not be negative; got "
                             f"{initial_accumulator_value}")
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon
        self._initial = [initial_accumulator_value]

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        return rate, real(self.epsilon)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, epsilon = k
        (a,) = slots
        a += g * g
        return g * rate / xp.sqrt(a + epsilon)


class RMSprop(Optimizer):
    """v = rho v + (1 - rho) g²; w -= rate g / √(v + epsilon).

    With `centered`, v - mean(g)² takes the place of v. With momentum, b = momentum b + the step,
    and w -= b. Hinton 2012, "Neural networks for machine learning", lecture 6.
    """

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0,
                 epsilon: float = 1e-7, centered: bool = False, **kwargs: Any) -> None:
        self.slots = ("velocity", *(["momentum"] if momentum > 0 else []),  # type: ignore[misc]
                      *(["average_gradient"] if centered else []))
        super().__init__(learning_rate, **kwargs)
        self.rho, self.momentum = rho, momentum
        self.epsilon, self.centered = epsilon, bool(centered)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        return (rate, real(self.rho), real(1 - self.rho), real(self.epsilon),
                real(self.momentum))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, rho, rest, epsilon, momentum = k
        v = slots[0]
        v *= rho
        v += g * g * rest
        spread = v
        if self.centered:
            mean = slots[-1]
            mean *= rho
            mean += g * rest
            spread = v - mean * mean
        descent = g * rate / xp.sqrt(spread + epsilon)
        if not self.momentum > 0:
            return descent
        b = slots[1]
        b *= momentum
        b += descent
        return b


class Adadelta(Optimizer):
    """The step is rate g √(d + epsilon) / √(a + epsilon), with a, d means of past g² and steps².

    Zeiler 2012, arXiv:1212.5701.
    """

    slots = ("accumulated_grad", "accumulated_delta_var")

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7,
                 **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.rho, self.epsilon = rho, epsilon

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        return rate, real(self.rho), real(1 - self.rho), real(self.epsilon)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, rho, rest, epsilon = k
        squares, steps = slots
        squares *= rho
        squares += g * g * rest
        change = g * xp.sqrt(steps + epsilon) / xp.sqrt(squares + epsilon)
        steps *= rho
        steps += change * change * rest
        return change * rate

"""Adam and its relatives: steps along the mean gradient, divided by its size."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gtape.keras.optimizers.optimizer import Optimizer


def _moments(g: Any, m: Any, v: Any, c1: Any, c2: Any) -> None:
    """m += (g - m) c1; v += (g² - v) c2."""
    change = g - m
    change *= c1
    m += change
    change = g * g
    change -= v
    change *= c2
    v += change


def powers(optimizer: Any, real: Any, step: int) -> tuple[Any, Any]:
    """beta_1 and beta_2 to the power of the step; both pass through float32 first, whatever the
    dtype, because that is what makes the steps equal to TensorFlow's bit by bit."""
    count = real(step)
    return (real(np.float32(optimizer.beta_1)) ** count,
            real(np.float32(optimizer.beta_2)) ** count)


class Adam(Optimizer):
    """m += (g - m)(1 - beta_1); v += (g² - v)(1 - beta_2); w -= alpha m / (√v + epsilon).

    alpha = rate √(1 - beta_2ᵗ) / (1 - beta_1ᵗ). With `amsgrad` the largest v so far divides.
    Kingma & Ba 2015, arXiv:1412.6980 (its "epsilon hat" form); Reddi et al. 2018,
    arXiv:1904.09237.
    """

    slots: ClassVar[tuple[str, ...]] = ("momentum", "velocity")

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-7, amsgrad: bool = False, weight_decay: float | None = None,
                 clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        if amsgrad:
            self.slots = (*self.slots, "velocity_hat")  # type: ignore[misc]
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm,
                         use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)
        self.beta_1, self.beta_2 = beta_1, beta_2
        self.epsilon, self.amsgrad = epsilon, bool(amsgrad)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        p1, p2 = powers(self, real, step)
        one = real(1)
        alpha = rate * np.sqrt(one - p2) / (one - p1)
        return alpha, real(1 - self.beta_1), real(1 - self.beta_2), real(self.epsilon)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        alpha, c1, c2, epsilon = k
        m, v = slots[:2]
        _moments(g, m, v, c1, c2)
        if self.amsgrad:
            largest = slots[2]
            xp.maximum(largest, v, out=largest)
            v = largest
        size = xp.sqrt(v)
        size += epsilon
        descent = m * alpha
        descent /= size
        return descent


class AdamW(Adam):
    """Adam, with w first multiplied by 1 - weight_decay rate.

    Loshchilov & Hutter 2019, arXiv:1711.05101.

    Raises:
        ValueError: weight_decay is None.
    """

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.004,
                 beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 amsgrad: bool = False, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None,
                 use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        if weight_decay is None:
            raise ValueError("AdamW needs a weight_decay; use Adam for none")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay, clipnorm,
                         clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps,
                         name, **kwargs)


class Adamax(Adam):
    """m as in Adam; u = max(beta_2 u, |g|); w -= rate m / ((1 - beta_1ᵗ)(u + epsilon)).

    Kingma & Ba 2015, arXiv:1412.6980, section 7.1.
    """

    slots = ("momentum", "norm")

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, **kwargs)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        p1, _ = powers(self, real, step)
        return (rate, real(1) - p1, real(1 - self.beta_1), real(self.beta_2),
                real(self.epsilon))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, left, c1, b2, epsilon = k
        m, u = slots
        m += (g - m) * c1
        u *= b2
        xp.maximum(u, xp.abs(g), out=u)
        return (m * rate) / ((u + epsilon) * left)


class Nadam(Adam):
    """Adam with Nesterov momentum. Dozat 2016, "Incorporating Nesterov momentum into Adam"."""

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, **kwargs)

    def _schedule(self, step: int) -> float:
        return self.beta_1 * (1.0 - 0.5 * 0.96**step)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        now, following = self._schedule(step), self._schedule(step + 1)
        product = float(np.prod([self._schedule(i) for i in range(1, step + 1)]))
        _, p2 = powers(self, real, step)
        return (rate, real(1 - self.beta_1), real(1 - self.beta_2), real(self.epsilon),
                real(following / (1 - product * following)), real((1 - now) / (1 - product)),
                real(1) - p2)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, c1, c2, epsilon, of_mean, of_gradient, left = k
        m, v = slots
        _moments(g, m, v, c1, c2)
        size = xp.sqrt(v / left)
        size += epsilon
        return (m * of_mean + g * of_gradient) * rate / size

"""Adam whose averaging takes the place of a learning-rate schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.keras.optimizers.optimizer import Optimizer, wide


class ScheduleFreeAdamW(Optimizer):
    """z -= rate g / (√v̂ + epsilon); x is the mean of all z; w = (1 - beta_1) z + beta_1 x.

    Defazio et al. 2024, arXiv:2405.15682.

    Args:
        warmup_steps: the learning rate grows linearly during so many steps.
    """

    slots = ("momentum", "velocity")

    def __init__(self, learning_rate: Any = 0.0025, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-8, warmup_steps: int = 0, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.warmup_steps = warmup_steps

    def begin(self, group: Any) -> None:
        group.slots[0][...] = group.weights()

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        if self.warmup_steps > 0:
            rate = rate * real(np.minimum(wide(step) / self.warmup_steps, 1.0))
        b1, b2 = real(self.beta_1), real(self.beta_2)
        return (rate, b1, real(1) - b1, real(1) - b2, real(1) - b2 ** real(step),
                real(self.epsilon), real(1 / wide(step)))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, b1, c1, c2, left, epsilon, share = k
        z, v = slots
        x = (w - c1 * z) / b1
        v += (g * g - v) * c2
        z -= rate * g / (xp.sqrt(v / left) + epsilon)
        x = (1 - share) * x + share * z
        return w - (c1 * z + b1 * x)

"""Rules that look at each variable as a whole: Lamb, Adafactor, Muon."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gtape.keras.optimizers.adam import Adam, powers
from gtape.keras.optimizers.optimizer import Optimizer, wide
from gtape.numerics.sums import total


def _moments(g: Any, m: Any, v: Any, c1: Any, c2: Any) -> None:
    m += (g - m) * c1
    v += (g * g - v) * c2


class Lamb(Adam):
    """Adam's step, scaled to ‖w‖ / ‖step‖ of its variable. You et al. 2020, arXiv:1904.00962."""

    elementwise = False

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
                 epsilon: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, **kwargs)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        p1, p2 = powers(self, real, step)
        return (rate, real(1 - self.beta_1), real(1 - self.beta_2), real(self.epsilon),
                real(1) - p1, real(1) - p2)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, c1, c2, epsilon, left_1, left_2 = k
        m, v = slots
        _moments(g, m, v, c1, c2)
        change = (m / left_1) / (xp.sqrt(v / left_2) + epsilon)
        size, length = xp.sqrt(xp.sum(w * w)), xp.sqrt(xp.sum(change * change))
        usable = (size > 0) & (length > 0)
        ratio = xp.where(usable, size / xp.where(usable, length, 1), 1).astype(w.dtype)
        return change * (ratio * rate)


class Adafactor(Optimizer):
    """Adam without momentum, whose second moments are kept as row and column means.

    Shazeer & Stern 2018, arXiv:1804.04235.

    Args:
        beta_2_decay: the exponent with which beta_2 goes to 1.
        epsilon_1, epsilon_2: added to g², and the least size of a variable.
        clip_threshold: limit on the root mean square of a step.
        relative_step: the learning rate is at most 1 / √t.
    """

    # The means are kept in full arrays, of which the first rows are used, because the state of a
    # variable has its shape.
    slots = ("row_mean", "column_mean", "square_mean")
    elementwise = False

    def __init__(self, learning_rate: Any = 0.001, beta_2_decay: float = -0.8,
                 epsilon_1: float = 1e-30, epsilon_2: float = 1e-3, clip_threshold: float = 1.0,
                 relative_step: bool = True, **kwargs: Any) -> None:
        super().__init__(learning_rate, **kwargs)
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = beta_2_decay, epsilon_1, epsilon_2
        self.clip_threshold, self.relative_step = clip_threshold, bool(relative_step)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        count = wide(step)
        limited = np.minimum(wide(rate), count**-0.5)
        beta = 1 - count**self.beta_2_decay
        return (real(limited), real(beta), real(1 - beta), real(self.epsilon_1),
                real(self.epsilon_2), real(self.clip_threshold))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, beta, rest, epsilon_1, epsilon_2, threshold = k
        squares = g * g + epsilon_1
        if w.ndim >= 2:
            over_rows = total(squares, (w.ndim - 2,)) / w.shape[-2]
            rows = slots[0][..., 0] * beta + xp.mean(squares, axis=-1) * rest
            columns = slots[1][..., 0, :] * beta + over_rows * rest
            slots[0][..., 0], slots[1][..., 0, :] = rows, columns
            share = rows / xp.mean(rows, axis=-1, keepdims=True)
            spread = share[..., None] * columns[..., None, :]
        else:
            spread = slots[2]
            spread *= beta
            spread += squares * rest
        change = g / xp.sqrt(spread)
        size = xp.maximum(epsilon_2, xp.sqrt(xp.mean(w * w)))
        change /= xp.maximum(1, xp.sqrt(xp.mean(change * change)) / threshold)
        return (change * (size * rate)).astype(w.dtype)


class Muon(Optimizer):
    """Momentum whose matrices are brought close to orthogonal; Adam for all other variables.

    Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; the scale of
    the step is that of Liu et al. 2025, arXiv:2502.16982.

    Args:
        exclude_layers: patterns; variables whose path matches one are updated by Adam.
        exclude_embeddings: so are those whose path contains 'embedding'.
        muon_a, muon_b, muon_c: the polynomial of the Newton-Schulz iteration.
        ns_steps: how often it is applied.
        rms_rate: the step's root mean square; None leaves it.
    """

    slots = ("momentum", "velocity")
    elementwise = False

    def __init__(self, learning_rate: Any = 0.001, adam_beta_1: float = 0.9,
                 adam_beta_2: float = 0.999, adam_weight_decay: float = 0.004,
                 epsilon: float = 1e-7, weight_decay: float | None = 0.004,
                 exclude_layers: Any = None, exclude_embeddings: bool = True,
                 muon_a: float = 3.4445, muon_b: float = -4.7750, muon_c: float = 2.0315,
                 adam_lr_ratio: float = 1, momentum: float = 0.95, ns_steps: int = 5,
                 nesterov: bool = True, rms_rate: float | None = 0.2, **kwargs: Any) -> None:
        super().__init__(learning_rate, weight_decay, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = adam_beta_1, adam_beta_2, epsilon
        self._excluded = [*(exclude_layers or []), *(["embedding"] if exclude_embeddings else [])]
        self._polynomial = (muon_a, muon_b, muon_c)
        self.momentum, self.nesterov, self.ns_steps = momentum, bool(nesterov), ns_steps
        self.rms_rate, self.adam_lr_ratio = rms_rate, adam_lr_ratio

    def _by_adam(self, state: Any) -> bool:
        return state._value.ndim != 2 or any(
            re.search(pattern, state._name.lower()) for pattern in self._excluded)

    def facing(self, state: Any) -> None:
        self._adam_now = self._by_adam(state)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        p1, p2 = powers(self, real, step)
        alpha = rate * real(self.adam_lr_ratio) * np.sqrt(real(1) - p2) / (real(1) - p1)
        return (rate, alpha, real(1 - self.beta_1), real(1 - self.beta_2), real(self.epsilon),
                real(self.momentum))

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, alpha, c1, c2, epsilon, momentum = k
        m, v = slots
        if self._adam_now:
            _moments(g, m, v, c1, c2)
            return m * alpha / (xp.sqrt(v) + epsilon)
        m += g + m * (momentum - 1)
        made = self._orthogonal(xp, g + momentum * m if self.nesterov else m) * rate
        if self.rms_rate is None:
            return made
        return (made * (max(w.shape) ** 0.5 * self.rms_rate)).astype(w.dtype)

    def _orthogonal(self, xp: Any, x: Any) -> Any:
        """Newton-Schulz iterations, which bring all singular values near 1."""
        a, b, c = self._polynomial
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / (xp.sqrt(xp.sum(x * x)) + 1e-7)
        for _ in range(self.ns_steps):
            gram = x @ x.T
            x = a * x + (b * gram + c * (gram @ gram)) @ x
        return x.T if tall else x

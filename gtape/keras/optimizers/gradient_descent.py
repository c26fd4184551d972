"""Steps along the gradient or its sign: SGD with momentum, and Lion."""

from __future__ import annotations

from typing import Any

from gtape.core.text import shown
from gtape.keras.optimizers.optimizer import Optimizer


class SGD(Optimizer):
    """w -= rate g; with momentum b = momentum b - rate g and w += b.

    With `nesterov`, w += momentum b - rate g. Polyak 1964; Nesterov 1983; Sutskever et al. 2013
    (ICML).

    Raises:
        ValueError: momentum outside [0, 1].
    """

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None,
                 use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        if not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1:
            raise ValueError(f"momentum must lie in [0, 1]; got {shown(momentum)}")
        if momentum:
            self.slots = ("momentum",)  # type: ignore[misc]
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm,
                         use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)
        self.momentum, self.nesterov = momentum, bool(nesterov)

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        return rate, real(self.momentum)

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, momentum = k
        descent = g * rate
        if not slots:
            return descent
        (b,) = slots
        b *= momentum
        b -= descent
        return descent - b * momentum if self.nesterov else -b


class Lion(Optimizer):
    """w -= rate sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g.

    Chen et al. 2023, arXiv:2302.06675.

    Raises:
        ValueError: beta_1 outside (0, 1].
    """

    slots = ("momentum",)

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99,
                 weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None,
                 use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm,
                         use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"beta_1 must lie in (0, 1]; got {beta_1}")
        self.beta_1, self.beta_2 = beta_1, beta_2

    def constants(self, real: Any, rate: Any, step: int) -> Any:
        b1, b2 = real(self.beta_1), real(self.beta_2)
        return rate, b1, real(1) - b1, b2, real(1) - b2

    def step(self, k: Any, xp: Any, w: Any, g: Any, *slots: Any) -> Any:
        rate, b1, c1, b2, c2 = k
        (m,) = slots
        descent = xp.sign(m * b1 + g * c1)
        descent *= rate
        m *= b2
        m += g * c2
        return descent

"""Gradients on their way into an update: dense, in the variable's dtype, within limits."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor
from gtape.core.text import shown
from gtape.keras.optimizers import clipping


class Settings(NamedTuple):
    """What every optimizer can be told, besides its rule."""

    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None

    def checked(self) -> Settings:
        """Itself. Raises ValueError for settings that contradict each other."""
        limits = (self.clipnorm, self.clipvalue, self.global_clipnorm)
        if sum(limit is not None for limit in limits) > 1:
            raise ValueError(f"give one of clipnorm, clipvalue and global_clipnorm; got {limits}")
        if any(limit is not None and limit <= 0 for limit in limits):
            raise ValueError(f"a limit on gradients must be positive; got {limits}")
        if self.use_ema and not 0 <= self.ema_momentum <= 1:
            raise ValueError(f"ema_momentum must lie in [0, 1]; got {self.ema_momentum}")
        for name in ("ema_overwrite_frequency", "gradient_accumulation_steps"):
            value = getattr(self, name)
            least = 2 if name == "gradient_accumulation_steps" else 1
            if value is not None and (not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be an integer of at least {least}; got "
                                 f"{shown(value)}")
        return self


def _array(gradient: Any, state: Any) -> Any:
    """The array of a gradient, in the dtype of its variable.

    Raises:
        InvalidArgumentError: another shape or device than the variable's.
    """
    value = state._value
    if type(gradient) is not EagerTensor:
        gradient = gradient.to_dense() if hasattr(gradient, "to_dense") else convert(
            gradient, None, value._t.device)
    array, wanted = gradient._a, value._t
    if array.shape != value._a.shape:
        raise InvalidArgumentError(
            f"the gradient for the variable '{state._name}' must have its shape "
            f"{tuple(value._a.shape)}; got {tuple(array.shape)}")
    if gradient._t is not wanted:
        if gradient._t.device is not wanted.device:
            raise InvalidArgumentError(
                f"the gradient for the variable '{state._name}' must live on "
                f"{wanted.device.name}; got one on {gradient.device}")
        array = array.astype(wanted.dtype.np_dtype)
    return array


def dense(gradients: list[Any], states: list[Any]) -> list[Any]:
    """Dense arrays in the variables' dtypes.

    Raises:
        InvalidArgumentError: another shape or device than the variable's.
    """
    return [_array(g, s) for g, s in zip(gradients, states)]


def unscaled(settings: Settings, arrays: list[Any]) -> list[Any]:
    """The gradients without the factor of the loss."""
    scale = settings.loss_scale_factor
    return arrays if scale is None else [a / a.dtype.type(scale) for a in arrays]


def prepared(settings: Settings, gradients: list[Any], states: list[Any]) -> list[Any]:
    """Dense arrays in the variables' dtypes, without the factor of the loss."""
    return unscaled(settings, dense(gradients, states))


def limited(settings: Settings, arrays: list[Any], states: list[Any]) -> list[Any]:
    """The gradients within the limit that was set."""
    if settings.clipnorm is not None:
        return [clipping.clipped_by_norm(s._value._t.xp, np.asarray(a) if np.isscalar(a) else a,
                                         settings.clipnorm) for a, s in zip(arrays, states)]
    if settings.clipvalue is not None:
        return [clipping.clipped_by_value(s._value._t.xp, a, settings.clipvalue)
                for a, s in zip(arrays, states)]
    if settings.global_clipnorm is not None:
        return clipping.clipped_by_global_norm([s._value._t.xp for s in states], arrays,
                                               settings.global_clipnorm)
    return arrays


def with_gradients(grads: list[Any], variables: list[Any]) -> tuple[list[Any], list[Any]]:
    """The pairs that have a gradient.

    Raises:
        ValueError: there are none.
    """
    from gtape.core.tape_recording import stack_level

    missing = [v.name for g, v in zip(grads, variables) if g is None]
    if len(missing) == len(grads):
        raise ValueError(f"no gradient for any variable: {', '.join(missing)}. "
                         f"tape.explain(loss, variable) says why")
    warnings.warn(f"no gradient for the variables {', '.join(missing)}; they stay as they are. "
                  f"tape.explain(loss, variable) says why", UserWarning, stacklevel=stack_level())
    kept = [(g, v) for g, v in zip(grads, variables) if g is not None]
    return [g for g, _ in kept], [v for _, v in kept]

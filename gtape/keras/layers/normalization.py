"""Normalisation of each example: over features, groups, by root mean square, by length."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.state import paused
from gtape.keras import constraints, initializers, regularizers
from gtape.keras.config import epsilon as tiny
from gtape.keras.layers.arguments import axis_length
from gtape.keras.layers.layer import Layer
from gtape.ops.creation import ones, zeros
from gtape.ops.layout import reshape
from gtape.ops.scalars import add, multiply


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(sorted(a % ndim for a in ((axis,) if isinstance(axis, int) else axis)))


def _spread(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n if i in axes else 1 for i, n in enumerate(shape))


class LayerNormalization(Layer):
    """(x - μ) / √(σ² + epsilon) gamma + beta, with μ, σ² of each example over `axis`.

    Ba, Kiros & Hinton 2016, arXiv:1607.06450.
    """

    def __init__(self, axis: Any = -1, epsilon: float = 0.001, center: bool = True,
                 scale: bool = True, beta_initializer: Any = "zeros",
                 gamma_initializer: Any = "ones", beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None,
                 gamma_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else tuple(axis)
        self.epsilon, self.center, self.scale = float(epsilon), bool(center), bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)

    def _weights_of(self, shape: tuple[int, ...]) -> None:
        self.gamma = self.add_weight(
            shape, self.gamma_initializer, regularizer=self.gamma_regularizer,
            constraint=self.gamma_constraint, name="gamma") if self.scale else None
        self.beta = self.add_weight(
            shape, self.beta_initializer, regularizer=self.beta_regularizer,
            constraint=self.beta_constraint, name="beta") if self.center else None

    def build(self, input_shape: Any) -> None:
        axes = _axes(self.axis, len(input_shape))
        self._weights_of(tuple(axis_length(self, input_shape, a) for a in axes))

    def call(self, inputs: Any) -> Any:
        from gtape.ops.normalization import layer_norm

        shape = inputs.spec.shape
        axes = _axes(self.axis, len(shape))
        spread = _spread(shape, axes)
        gamma = ones(spread, inputs.dtype) if self.gamma is None else reshape(self.gamma, spread)
        beta = zeros(spread, inputs.dtype) if self.beta is None else reshape(self.beta, spread)
        return layer_norm(inputs, gamma, beta, axes=axes, eps=self.epsilon)


class GroupNormalization(LayerNormalization):
    """Normalisation over the positions and channels of each of `groups` groups of channels.

    Wu & He 2018, arXiv:1803.08494. groups=-1 takes every channel by itself.

    Raises:
        ValueError: the groups do not divide the channels.
    """

    def __init__(self, groups: int = 32, axis: int = -1, epsilon: float = 0.001,
                 center: bool = True, scale: bool = True, **kwargs: Any) -> None:
        super().__init__(axis, epsilon, center, scale, **kwargs)
        self.groups = groups

    def build(self, input_shape: Any) -> None:
        (axis,) = _axes(self.axis, len(input_shape))
        channels = axis_length(self, input_shape, axis)
        if self.groups == -1:
            self.groups = channels
        if channels % self.groups:
            raise ValueError(f"the layer '{self.name}' has {self.groups} groups, which must divide "
                             f"the number of channels; got {channels}")
        self._weights_of((channels,))

    def call(self, inputs: Any) -> Any:
        from gtape.ops.normalization import layer_norm

        shape = inputs.spec.shape
        (axis,) = _axes(self.axis, len(shape))
        split = (*shape[:axis], self.groups, shape[axis] // self.groups, *shape[axis + 1:])
        axes = tuple(i for i in range(1, len(split)) if i != axis)
        one = ones((1,) * len(split), inputs.dtype)
        y: Any = reshape(layer_norm(reshape(inputs, split), one, one - one, axes=axes,
                                    eps=self.epsilon), shape)
        spread = _spread(shape, (axis,))
        if self.gamma is not None:
            y = multiply(y, reshape(self.gamma, spread))
        return y if self.beta is None else add(y, reshape(self.beta, spread))


class RMSNormalization(Layer):
    """x / √(mean x² + epsilon) scale, over `axis`. Zhang & Sennrich 2019, arXiv:1910.07467."""

    def __init__(self, axis: Any = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else tuple(axis)
        self.epsilon = float(epsilon)

    def build(self, input_shape: Any) -> None:
        axes = _axes(self.axis, len(input_shape))
        self.scale = self.add_weight(tuple(axis_length(self, input_shape, a) for a in axes),
                                     "ones", name="scale")

    def call(self, inputs: Any) -> Any:
        from gtape.ops.normalization import rms_norm

        axes = _axes(self.axis, inputs.ndim)
        scale = reshape(self.scale, _spread(inputs.spec.shape, axes))
        return rms_norm(inputs, scale, axes=axes, eps=self.epsilon)


class UnitNormalization(Layer):
    """x / ‖x‖ along `axis`."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis if isinstance(axis, int) else list(axis)
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.norms import l2_normalize

        return l2_normalize(inputs, self.axis)


class Normalization(Layer):
    """(x - mean) / √variance with numbers given, or found by `adapt(data)`.

    Args:
        axis: the axes that keep their own mean and variance; None for one of each.
        invert: the other way round.
    """

    def __init__(self, axis: Any = -1, mean: Any = None, variance: Any = None,
                 invert: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError("Normalization takes mean and variance together, or neither")
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self.invert = bool(invert)
        self._numbers = None if mean is None else (np.asarray(mean), np.asarray(variance))

    def build(self, input_shape: Any) -> None:
        axes = _axes(self.axis, len(input_shape))
        spread = _spread(tuple(input_shape), axes)
        kept = tuple(input_shape[a] for a in axes)
        if self._numbers is None:
            self.adapt_mean = self.add_weight(kept, "zeros", trainable=False, name="mean")
            self.adapt_variance = self.add_weight(kept, "ones", trainable=False, name="variance")
            self.mean: Any = None
            self.variance: Any = None
        else:
            numbers = [np.broadcast_to(n, kept).reshape(spread) for n in self._numbers]
            self.mean, self.variance = (convert(n.astype(self._dtype.np_dtype)) for n in numbers)

    def adapt(self, data: Any) -> None:
        """Find mean and variance of an array."""
        array = np.asarray(data)
        if not self.built:
            self.build(array.shape)
        over = tuple(i for i in range(array.ndim) if i not in _axes(self.axis, array.ndim))
        with paused():
            for variable, found in ((self.adapt_mean, array.mean(over, np.float64)),
                                    (self.adapt_variance, array.var(over, np.float64))):
                variable.assign(found.astype(self._dtype.np_dtype))

    def call(self, inputs: Any) -> Any:
        from gtape.ops.casting import cast
        from gtape.ops.scalars import maximum, sqrt

        mean, variance = self.mean, self.variance
        if mean is None:
            spread = _spread(inputs.spec.shape, _axes(self.axis, inputs.ndim))
            mean, variance = (reshape(v, spread) for v in (self.adapt_mean, self.adapt_variance))
        x = cast(inputs, self._dtype)
        scale = maximum(sqrt(variance), tiny())
        return x * scale + mean if self.invert else (x - mean) / scale  # type: ignore[operator]

"""Layers that apply a function: activations, rescaling, any Python function."""

from __future__ import annotations

from typing import Any

from gtape.core.text import shown
from gtape.keras import activations, constraints, initializers, regularizers
from gtape.keras.layers.layer import Layer
from gtape.ops.scalars import where


class Activation(Layer):
    """An activation function as a layer."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.built = True

    def call(self, inputs: Any) -> Any:
        return self.activation(inputs)


class Lambda(Layer):
    """Any function of the inputs; `mask` and `training` are passed when it takes them.

    Variables that the function uses are not found by the layer: write a Layer for those.
    """

    def __init__(self, function: Any, output_shape: Any = None, mask: Any = None,
                 arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not callable(function):
            raise ValueError(f"Lambda takes a function; got {shown(function)}")
        import inspect

        self.function = function
        self.arguments = dict(arguments or {})
        self._names = set(inspect.signature(function).parameters)
        self.built = True

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        extra = {n: v for n, v in (("mask", mask), ("training", training)) if n in self._names}
        return self.function(inputs, **(self.arguments | extra))


class Rescaling(Layer):
    """x scale + offset."""

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset
        self.built = True

    def call(self, inputs: Any) -> Any:
        from gtape.ops.casting import cast

        return cast(inputs, self._dtype) * self.scale + self.offset


class ReLU(Layer):
    """max(x, 0), with `keras.activations.relu`'s arguments."""

    def __init__(self, max_value: float | None = None, negative_slope: float = 0.0,
                 threshold: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0 or threshold is None or threshold < 0 or (
                max_value is not None and max_value < 0):
            raise ValueError(f"ReLU: max_value, negative_slope and threshold must not be negative; "
                             f"got {max_value}, {negative_slope}, {threshold}")
        self.max_value = max_value
        self.negative_slope, self.threshold = negative_slope, threshold
        self.built = True

    def call(self, inputs: Any) -> Any:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    """x where it is positive, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        if "alpha" in kwargs:
            negative_slope = kwargs.pop("alpha")
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0:
            raise ValueError(f"negative_slope must not be negative; got {negative_slope}")
        self.negative_slope = negative_slope
        self.built = True

    def call(self, inputs: Any) -> Any:
        return activations.leaky_relu(inputs, self.negative_slope)


class ELU(Layer):
    """x where it is positive, else alpha (eˣ - 1)."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha
        self.built = True

    def call(self, inputs: Any) -> Any:
        return activations.elu(inputs, self.alpha)


class PReLU(Layer):
    """x where it is positive, else alpha x, with learned alpha. He et al. 2015, arXiv:1502.01852.

    alpha has the shape of one example, with length 1 in `shared_axes`.
    """

    def __init__(self, alpha_initializer: Any = "Zeros", alpha_regularizer: Any = None,
                 alpha_constraint: Any = None, shared_axes: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha_initializer = initializers.get(alpha_initializer)
        self.alpha_regularizer = regularizers.get(alpha_regularizer)
        self.alpha_constraint = constraints.get(alpha_constraint)
        self.shared_axes = () if shared_axes is None else (
            (shared_axes,) if isinstance(shared_axes, int) else tuple(shared_axes))

    def build(self, input_shape: Any) -> None:
        shape = list(input_shape[1:])
        for axis in self.shared_axes:
            shape[axis - 1] = 1
        self.alpha = self.add_weight(shape, self.alpha_initializer, name="alpha",
                                     regularizer=self.alpha_regularizer,
                                     constraint=self.alpha_constraint)

    def call(self, inputs: Any) -> Any:
        positive = activations.relu(inputs)
        return positive - self.alpha * activations.relu(-inputs)


class Softmax(Layer):
    """eˣ / Σ eˣ along `axis`; where `mask` is False the result is 0."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.built = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        if mask is not None:
            low = -3e4 if self.dtype == "float16" else -1e9
            inputs = where(mask, inputs, inputs + low)
        return activations.softmax(inputs, self.axis)

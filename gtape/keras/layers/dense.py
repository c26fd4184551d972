"""Dense: every output sees every input."""

from __future__ import annotations

from functools import partial
from typing import Any

from gtape.keras import activations, constraints, initializers, regularizers
from gtape.keras.layers.arguments import axis_length, check_length, positive
from gtape.keras.layers.layer import Layer
from gtape.ops import activations as ops
from gtape.ops.casting import cast
from gtape.ops.linear import linear
from gtape.ops.products import matmul
from gtape.ops.scalars import add


class Dense(Layer):
    """y = activation(x W + b) over the last axis. kernel W [in, units], bias b [units].

    Raises:
        ValueError: units that are no positive int, or inputs of fewer than two axes or of
            another last length than the kernel was made for.
    """

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = positive("units", units)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self._activated = self.activation is not activations.linear
        self._fused, self._fused_activation = _fused(self.activation)

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 2:
            raise ValueError(f"the layer '{self.name}' takes inputs of at least two axes; got "
                             f"shape {tuple(input_shape)}")
        self.kernel = self.add_weight(
            (axis_length(self, input_shape, -1), self.units), self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint, name="kernel")
        self.bias = self.add_weight(
            (self.units,), self.bias_initializer, regularizer=self.bias_regularizer,
            constraint=self.bias_constraint, name="bias") if self.use_bias else None

    def call(self, inputs: Any) -> Any:
        kernel = self.kernel
        check_length(self, inputs, -1, kernel._state._value.spec.shape[0])
        if inputs._t.dtype is not self._dtype:
            inputs = cast(inputs, self._dtype)
        if self.bias is None:
            y = matmul(inputs, kernel)
        elif self._fused and not inputs._t.device.is_host:
            return linear(inputs, kernel, self.bias, self._fused_activation)
        else:
            y = add(matmul(inputs, kernel), self.bias)
        return self.activation(y) if self._activated else y


def _fused(activation: Any) -> tuple[bool, str | None]:
    """Whether `linear` has this activation, and its name there."""
    if activation is activations.linear:
        return True, None
    if activation in (activations.relu, ops.relu):
        return True, "relu"
    tanh_form = (isinstance(activation, partial) and activation.func is ops.gelu
                 and not activation.args and activation.keywords == {"approximate": True})
    return tanh_form, "gelu_tanh" if tanh_form else None

"""BatchNormalization: mean 0 and variance 1 over the batch, with moving averages for later."""

from __future__ import annotations

from typing import Any

from gtape.core.state import paused
from gtape.keras import constraints, initializers, regularizers
from gtape.keras.layers.arguments import axis_length
from gtape.keras.layers.layer import Layer
from gtape.ops.casting import cast
from gtape.ops.creation import ones, zeros
from gtape.ops.layout import reshape
from gtape.ops.normalization import batch_norm_training, batch_normalization


class BatchNormalization(Layer):
    """In training (x - μ) / √(σ² + epsilon) gamma + beta with μ, σ² of the batch, over all axes
    but `axis`; otherwise with the moving averages, which training updates as
    moving = momentum moving + (1 - momentum) new.

    A layer that is not trainable always uses the moving averages. Ioffe & Szegedy 2015,
    arXiv:1502.03167.
    """

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 0.001,
                 center: bool = True, scale: bool = True, beta_initializer: Any = "zeros",
                 gamma_initializer: Any = "ones", moving_mean_initializer: Any = "zeros",
                 moving_variance_initializer: Any = "ones", beta_regularizer: Any = None,
                 gamma_regularizer: Any = None, beta_constraint: Any = None,
                 gamma_constraint: Any = None, synchronized: bool = False,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if synchronized:
            raise ValueError("BatchNormalization: synchronized=True needs several devices that "
                             "train one model, which gtape does not have")
        if isinstance(axis, (list, tuple)):
            axis = axis[0]
        self.axis, self.momentum, self.epsilon = int(axis), float(momentum), float(epsilon)
        self.center, self.scale = bool(center), bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)

    def build(self, input_shape: Any) -> None:
        shape = (axis_length(self, input_shape, self.axis),)
        self.gamma = self.add_weight(
            shape, self.gamma_initializer, regularizer=self.gamma_regularizer,
            constraint=self.gamma_constraint, name="gamma") if self.scale else None
        self.beta = self.add_weight(
            shape, self.beta_initializer, regularizer=self.beta_regularizer,
            constraint=self.beta_constraint, name="beta") if self.center else None
        self.moving_mean = self.add_weight(
            shape, self.moving_mean_initializer, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(
            shape, self.moving_variance_initializer, trainable=False, name="moving_variance")

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if mask is not None:
            raise ValueError("BatchNormalization: masks are not supported; leave masked steps out "
                             "with tf.boolean_mask first")
        axis = self.axis % inputs.ndim
        spread = [1] * inputs.ndim
        spread[axis] = -1
        last = axis == inputs.ndim - 1
        shaped = (lambda v: v) if last else (lambda v: v if v is None else reshape(v, spread))
        if not (training and self.trainable):
            return batch_normalization(
                inputs, shaped(self.moving_mean), shaped(self.moving_variance),
                shaped(self.beta), shaped(self.gamma), self.epsilon)
        shape = (inputs.shape[axis],)
        gamma = ones(shape, inputs.dtype) if self.gamma is None else self.gamma._read_()
        beta = zeros(shape, inputs.dtype) if self.beta is None else self.beta._read_()
        axes = tuple(i for i in range(inputs.ndim) if i != axis)
        y, mean, variance = batch_norm_training.run(
            (inputs, shaped(gamma), shaped(beta)), (axes, self.epsilon))
        self._follow(mean, variance)
        return y

    def _follow(self, mean: Any, variance: Any) -> None:
        """Move the averages towards the batch's, unrecorded."""
        with paused():
            for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                new = reshape(cast(new, self._dtype), (-1,))
                step = (new - moving) * (1.0 - self.momentum)
                moving.assign_add(step, read_value=False)

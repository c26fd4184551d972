"""Layers as gtape's own ops in place of Keras' formulas.

Dense and normalisations on a GPU, which has kernels for them, and Dense called eagerly too, where
one op costs less than three; LSTM and GRU of whole sequences, which Keras goes through step by step
where there is no such form: for masks, other activations, unknown lengths.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.tensor import EagerTensor, Tensor
from gtape.engine.amendments import instead
from gtape.ops.linalg.linear import linear
from gtape.ops.nn import recurrent
from gtape.ops.nn.normalization import along, batch_norm_training, layer_norm, rms_norm


def amend_dense(module: ModuleType) -> None:
    """Let a product with its bias and activation be this op."""
    from keras.src import activations

    plain = module.Dense.call
    relus = (activations.relu, tf.nn.relu)  # Keras' by name, ours where it is given

    @instead(module.Dense, "call")
    def call(self: Any, inputs: Any, training: bool | None = None) -> Any:
        matrix = type(inputs) is EagerTensor and inputs.ndim == 2
        if self.bias is None or not (matrix or _served(inputs)) or (
                inputs.dtype != self.compute_dtype):
            return plain(self, inputs, training)
        kernel, activation = self.kernel, self.activation
        if kernel.dtype != self.compute_dtype:
            return plain(self, inputs, training)
        kind = "relu" if activation in relus else "gelu_tanh" if _is_gelu(activation) else None
        y = linear(inputs, kernel, self.bias, kind)
        return y if activation is None or kind is not None else activation(y)


def _is_gelu(activation: Callable[..., object]) -> bool:
    """Whether it is gelu in its form with tanh."""
    return isinstance(activation, functools.partial) and activation.func is tf.nn.gelu and (
        not activation.args and activation.keywords == {"approximate": True})


def amend_nn(module: ModuleType) -> None:
    """Let the module's normalisations be these ops where a device has kernels for them."""
    _amend_normalization(module, "_layer_normalization", layer_norm, ("gamma", "beta"))
    _amend_normalization(module, "_rms_normalization", rms_norm, ("scale",))


def _amend_normalization(module: ModuleType, name: str, op: Any, names: tuple[str, ...]) -> None:
    plain = getattr(module, name)
    signature = inspect.signature(plain)

    @instead(module, name)
    def normalized(*args: Tensor, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given, x = bound.arguments, tf.convert_to_tensor(bound.arguments["x"])
        parameters = [given[name] for name in names]
        if any(p is None for p in parameters) or given.get("rms_scaling") or not _served(x):
            return plain(*args, **kwargs)
        wide, axes, parameters = along(x, given["axis"], parameters)
        eps = module.backend.epsilon() if given["epsilon"] is None else given["epsilon"]
        return tf.cast(op(wide, *parameters, axes=axes, eps=float(eps)), x.dtype)


def amend_batch_normalization(module: ModuleType) -> None:
    """Let a batch be normalised, and its moments be found, by the op that has kernels for both."""
    plain = module.BatchNormalization.call

    @instead(module.BatchNormalization, "call")
    def call(self: Any, inputs: Any, training: bool | None = None, mask: object = None) -> Any:
        if not (training is True and self.trainable and self.scale and self.center) or (
                mask is not None or self.renorm or not _served(inputs)):
            return plain(self, inputs, training, mask)
        x, _, parameters = along(inputs, self.axis, (self.gamma, self.beta))
        y, *moments = batch_norm_training.run(
            (x, *parameters), (tuple(self._reduction_axes), float(self.epsilon)))
        for moving, new in zip((self.moving_mean, self.moving_variance), moments):
            new = tf.cast(tf.reshape(new, moving.shape), moving.dtype)
            moving.assign(moving * self.momentum + new * (1.0 - self.momentum))
        return tf.cast(y, self.compute_dtype)


def _served(x: TensorLike | CompositeTensor) -> bool:
    return isinstance(x, tf.Tensor) and bool(x.ndim) and x.dtype.is_floating and (
        x._t.device.executor is not None)


def amend_rnn(module: ModuleType) -> None:
    """Give Keras' TensorFlow backend these forms."""
    for name in ("lstm", "gru"):
        plain = getattr(module, f"_do_{name}_arguments_support_cudnn")
        setattr(module, name, _form(getattr(module, name), plain, getattr(recurrent, name)))


def _form(form: Callable[..., object], plain: Callable[..., bool], run: Callable[..., Any]) -> Any:
    """`run` with the arguments of Keras' `form`; NotImplementedError where they are not `plain`."""
    def call(*args: Any, **kwargs: object) -> Any:
        bound = inspect.signature(form).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        x, bias, first = given["inputs"], given["bias"], 0 if given["time_major"] else 1
        kernel, weights = map(tf.convert_to_tensor, (given["kernel"], given["recurrent_kernel"]))
        # Only use_bias is no argument of the form itself.
        wanted = {n: given.get(n, bias is not None) for n in inspect.signature(plain).parameters}
        if given["mask"] is not None or None in x.shape or not x.shape[first] or (
                x.dtype != kernel.dtype) or not plain(**wanted):
            raise NotImplementedError  # Keras goes step by step then
        own, *other = tf.unstack(bias) if len(bias.shape) == 2 else [bias]
        # Inputs do not depend on states: one product serves all steps.
        rows = tf.reshape(x if first == 0 else tf.transpose(x, (1, 0, 2)), (-1, x.shape[2]))
        x = tf.reshape(tf.matmul(rows, kernel) + own, (x.shape[first], -1, kernel.shape[1]))
        states = [value for name, value in given.items() if name.startswith("initial_state")]
        outputs, state = run(tf.reverse(x, [0]) if given["go_backwards"] else x, weights, *other,
                             *states, given["return_sequences"])
        return state[0], tf.stack(outputs, axis=first), state

    return call

"""Layers as one op in place of Keras' formulas: on a GPU, which has kernels for it, and `Dense`
called eagerly too, where one op costs less than three."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.core.tensor import EagerTensor
from gtape.ops.linear import linear
from gtape.ops.normalization import batch_norm_training, layer_norm, rms_norm


def amend_dense(module: ModuleType) -> None:
    """Let a product with its bias and activation be this op."""
    from keras.src import activations

    cls: Any = module.Dense
    plain = cls.call
    relus = (activations.relu, tf.nn.relu)

    @functools.wraps(plain)
    def call(self: Any, inputs: Any, training: Any = None) -> Any:
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

    cls.call = call


def _is_gelu(activation: Any) -> bool:
    """Whether it is gelu in its form with tanh."""
    return isinstance(activation, functools.partial) and activation.func is tf.nn.gelu and (
        not activation.args and activation.keywords == {"approximate": True})


def amend_nn(module: ModuleType) -> None:
    """Let the module's normalisations be these ops where a device has kernels for them."""
    for name, op, parameters in (("_layer_normalization", layer_norm, ("gamma", "beta")),
                                 ("_rms_normalization", rms_norm, ("scale",))):
        setattr(module, name, _by(op, getattr(module, name), parameters, module.backend.epsilon))


def _by(op: Any, plain: Callable[..., Any], names: tuple[str, ...],
        epsilon: Callable[[], float]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def normalized(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(plain).bind(*args, **kwargs)
        bound.apply_defaults()
        given, x = bound.arguments, tf.convert_to_tensor(bound.arguments["x"])
        parameters = [given[name] for name in names]
        if any(p is None for p in parameters) or given.get("rms_scaling") or not _served(x):
            return plain(*args, **kwargs)
        wide, axes, parameters = _along(x, given["axis"], parameters)
        eps = epsilon() if given["epsilon"] is None else given["epsilon"]
        return tf.cast(op(wide, *parameters, axes=axes, eps=float(eps)), x.dtype)

    return normalized


def amend_batch_normalization(module: ModuleType) -> None:
    """Let a batch be normalised, and its moments be found, by the op that has kernels for both."""
    plain = module.BatchNormalization.call

    @functools.wraps(plain)
    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        if not (training is True and self.trainable and self.scale and self.center) or (
                mask is not None or self.renorm or not _served(inputs)):
            return plain(self, inputs, training, mask)
        x, _, parameters = _along(inputs, self.axis, (self.gamma, self.beta))
        y, *moments = batch_norm_training.run(
            (x, *parameters), (tuple(self._reduction_axes), float(self.epsilon)))
        for moving, new in zip((self.moving_mean, self.moving_variance), moments):
            new = tf.cast(tf.reshape(new, moving.shape), moving.dtype)
            moving.assign(moving * self.momentum + new * (1.0 - self.momentum))
        return tf.cast(y, self.compute_dtype)

    module.BatchNormalization.call = call


def _served(x: Any) -> bool:
    return isinstance(x, tf.Tensor) and bool(x.ndim) and x.dtype.is_floating and (
        x._t.device.executor is not None)


def _along(x: Any, axis: Any, parameters: Any) -> tuple[Any, tuple[int, ...], list[Any]]:
    """x in the wider dtype of both, the axes from 0, and parameters in a shape that broadcasts."""
    given = [tf.convert_to_tensor(p) for p in parameters]
    dtype = max([x.dtype, given[0].dtype], key=lambda d: d.size)
    axes = tuple(sorted(i % x.ndim for i in ([axis] if isinstance(axis, int) else axis)))
    shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
    return tf.cast(x, dtype), axes, [tf.reshape(tf.cast(p, dtype), shape) for p in given]

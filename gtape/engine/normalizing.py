"""Layer and RMS normalisation on a GPU: one op, which has a kernel, in place of Keras' formula."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.ops.normalization import layer_norm, rms_norm


def amend_nn(module: ModuleType) -> None:
    """Let the module's normalisations be these ops where a device has kernels for them."""
    layer, rms = module._layer_normalization, module._rms_normalization

    @functools.wraps(layer)
    def layer_normalization(x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1,
                            epsilon: float | None = None, rms_scaling: bool = False) -> Any:
        x = tf.convert_to_tensor(x)
        if gamma is None or beta is None or rms_scaling or not _served(x):
            return layer(x, gamma, beta, axis, epsilon, rms_scaling)
        wide, axes, (scale, shift) = _along(x, axis, gamma, beta)
        made = layer_norm(wide, scale, shift, axes=axes, eps=_epsilon(module, epsilon))
        return tf.cast(made, x.dtype)

    @functools.wraps(rms)
    def rms_normalization(x: Any, scale: Any = None, axis: Any = -1,
                          epsilon: float | None = None) -> Any:
        x = tf.convert_to_tensor(x)
        if scale is None or not _served(x):
            return rms(x, scale, axis, epsilon)
        wide, axes, (factor,) = _along(x, axis, scale)
        made = rms_norm(wide, factor, axes=axes, eps=_epsilon(module, epsilon))
        return tf.cast(made, x.dtype)

    module._layer_normalization = layer_normalization  # type: ignore[attr-defined]
    module._rms_normalization = rms_normalization  # type: ignore[attr-defined]


def _served(x: Any) -> bool:
    return bool(x.ndim) and x._t.device.executor is not None and x.dtype.is_floating


def _epsilon(module: ModuleType, given: float | None) -> float:
    return float(module.backend.epsilon() if given is None else given)


def _along(x: Any, axis: Any, *parameters: Any) -> tuple[Any, tuple[int, ...], list[Any]]:
    """x in the wider dtype of both, the axes from 0, and parameters in a shape that broadcasts."""
    given = [tf.convert_to_tensor(p) for p in parameters]
    dtype = max([x.dtype, given[0].dtype], key=lambda d: d.size)
    axes = tuple(sorted(i % x.ndim for i in ([axis] if isinstance(axis, int) else axis)))
    shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
    return tf.cast(x, dtype), axes, [tf.reshape(tf.cast(p, dtype), shape) for p in given]

"""Normalisation on a device: what the CPU gives, at every order, whether kernels serve or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.ops.nn import normalization
from gtape.ops.nn.normalization import batch_norm_training, layer_norm, rms_norm

_RNG = np.random.default_rng(0)
#: Op, shape, shape of the parameters, axes, whether there are kernels for them.
_CASES = [
    (layer_norm, (6, 8), (8,), (1,), True),
    (layer_norm, (2, 3, 4, 5), (1, 1, 4, 5), (2, 3), True),
    (layer_norm, (6, 8), (1, 1), (1,), False),
    (layer_norm, (2, 3, 4), (3, 1), (1,), False),
    (rms_norm, (6, 8), (1, 8), (1,), True),
    (rms_norm, (2, 3, 4), (3, 1), (1,), False),
    (batch_norm_training, (6, 8), (8,), (0,), True),
    (batch_norm_training, (2, 3, 2, 5), (5,), (0, 1, 2), True),
    (batch_norm_training, (2, 3, 4), (3, 1), (0, 2), False)]


def _found(op: Any, values: list[Any], axes: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    """The result, its gradients, and where there is enough precision theirs."""
    inputs = [tf.constant(v, dtype) for v in values]
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = op(*inputs, axes=axes, eps=1e-3)
            loss = tf.reduce_sum(y * y * y)
        recorded = tape.gradient(loss, inputs)
        slope = tf.add_n([tf.reduce_sum(g * g) for g in recorded])
    second = outer.gradient(slope, inputs) if dtype == "float64" else []
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.reduce_sum(op(*inputs, axes=axes, eps=1e-3) ** 3)
    plain = tape.gradient(loss, inputs)
    assert all(g.dtype == y.dtype for g in plain)
    return [np.asarray(t).astype(float) for t in (y, *recorded, *plain, *second) if t is not None]


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 1e-3),
                                              ("float16", 5e-2)])
@pytest.mark.parametrize("op, shape, of, axes, served", _CASES)
def test_every_order_is_that_of_the_cpu(gpus: Any, monkeypatch: pytest.MonkeyPatch, op: Any,
                                        shape: Any, of: Any, axes: Any, served: bool, dtype: str,
                                        tolerance: float) -> None:
    by_kernels = []
    gradient = getattr(normalization, f"{op.name.removesuffix('_training')}_grad_")
    for one in (op, gradient):
        kernel = one.cuda_kernel()

        def noted(*args: Any, kernel: Any = kernel, name: str = one.name, **attrs: Any) -> Any:
            made = kernel(*args, **attrs)
            if made is not None:
                by_kernels.append(name)
            return made

        monkeypatch.setattr(one, "_kernel", noted)
    values = [_RNG.normal(size=shape),
              *(_RNG.normal(size=of) for _ in range(len(op.params) - 1))]
    with tf.device("GPU:0"):
        got = _found(op, values, axes, dtype)
    with tf.device("CPU:0"):
        wanted = _found(op, values, axes, dtype)
    for found, right in zip(got, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=tolerance,
                                   atol=tolerance * np.abs(right).max())
    assert len(set(by_kernels)) == (2 if served and gpus[0].executor is not None else 0)


def test_a_batch_norm_layer_trains_and_infers(gpus: Any) -> None:
    x = _RNG.normal(size=(4, 3, 3, 8))
    found = []
    for device in ("GPU:0", "CPU:0"):
        with tf.device(device):
            layer = tf.keras.layers.BatchNormalization(momentum=0.5, dtype="float16")
            given = tf.constant(x, tf.float16)
            found.append([np.asarray(v).astype(float) for v in (
                layer(given, training=True), layer(given), layer.moving_mean,
                layer.moving_variance)])
    for got, right in zip(*found, strict=True):
        np.testing.assert_allclose(got, right, rtol=2e-2, atol=2e-2)

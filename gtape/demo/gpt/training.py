"""The optimizer of the GPT, and its loss on held-out text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gtape as tf
from gtape.demo.gpt.data import windows
from gtape.demo.gpt.model import GPT
from gtape.demo.step import mean_loss

_PEAK, _FLOOR = 2e-3, 0.1
_WARMUP = 100


def make_optimizer(model: GPT, steps: int) -> Any:
    """AdamW with linear warm-up and half a cosine; gains and biases are not decayed."""
    warmup = min(_WARMUP, steps // 10 + 1)
    rate = tf.keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=max(1, steps - warmup), alpha=_FLOOR, warmup_target=_PEAK,
        warmup_steps=warmup)
    optimizer = tf.keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.95,
                                          global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(
        var_list=[v for v in model.trainable_variables if len(v.shape) < 2])
    return optimizer


def make_evaluation(model: GPT, held_out: np.ndarray, *, batches: int, size: int, eager: bool,
                    ) -> Callable[[], float]:
    """A function that gives the mean loss on windows spread evenly over the held-out text."""
    context = model.size.context
    starts = np.linspace(0, len(held_out) - context - 1, batches * size).astype(np.int64)
    inputs, targets = windows(held_out, starts, context)

    def loss_of(inputs: Any, targets: Any) -> Any:
        return mean_loss(model, inputs, targets)

    compiled = loss_of if eager else tf.function(loss_of)

    def evaluate() -> float:
        parts = [slice(i * size, (i + 1) * size) for i in range(batches)]
        return float(np.mean([float(compiled(tf.constant(inputs[p]), tf.constant(targets[p])))
                              for p in parts]))

    return evaluate

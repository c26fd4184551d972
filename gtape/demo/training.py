"""The training loop, written out with GradientTape."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import gtape as tf
from gtape.demo.data import Samples, batches
from gtape.demo.model import DigitsNet


class Step(NamedTuple):
    """One optimizer step: its number from 1, the loss before it, its wall time."""

    number: int
    loss: float
    seconds: float


def batch_loss(model: DigitsNet, batch: Samples) -> Any:
    """Mean softmax cross entropy of a batch: a scalar tensor."""
    logits = model(tf.constant(batch.images))
    labels = tf.constant(batch.labels)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def train_step(model: DigitsNet, optimizer: Any, batch: Samples) -> float:
    """One step of gradient descent; returns the loss before it."""
    with tf.GradientTape() as tape:
        loss = batch_loss(model, batch)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return float(loss)


def steps_per_epoch(samples: Samples, batch_size: int) -> int:
    return len(samples) // batch_size


def cosine_decay(peak: float, done: float) -> float:
    """peak (1 + cos(pi done)) / 2 for done in [0, 1]: Loshchilov & Hutter, arXiv:1608.03983."""
    return peak * (1 + cos(pi * done)) / 2


def train(model: DigitsNet, samples: Samples, *, steps: int, batch_size: int,
          learning_rate: float, seed: int) -> Iterator[Step]:
    """Train for `steps` steps of Adam (Kingma & Ba 2014, arXiv:1412.6980), one per item."""
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    rng = np.random.default_rng(seed)
    number = 0
    while number < steps:
        for batch in batches(samples, batch_size, rng):
            start = perf_counter()
            optimizer.learning_rate = cosine_decay(learning_rate, number / steps)
            loss = train_step(model, optimizer, batch)
            number += 1
            yield Step(number, loss, perf_counter() - start)
            if number == steps:
                return

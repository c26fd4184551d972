"""The training loop, written out with GradientTape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def mean_loss(model: DigitsNet, images: Any, labels: Any) -> Any:
    """Mean softmax cross entropy: a scalar tensor."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(images))
    return tf.reduce_mean(losses)


def batch_loss(model: DigitsNet, batch: Samples) -> Any:
    """`mean_loss` of a batch."""
    return mean_loss(model, tf.constant(batch.images), tf.constant(batch.labels))


def make_step(model: DigitsNet, optimizer: Any, eager: bool) -> Callable[[Any, Any], Any]:
    """A function of images and labels that updates the model and gives the loss before it."""
    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = mean_loss(model, images, labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return train_step if eager else tf.function(train_step)


def steps_per_epoch(samples: Samples, batch_size: int) -> int:
    return len(samples) // batch_size


def cosine_decay(peak: float, done: float) -> float:
    """peak (1 + cos(pi done)) / 2 for done in [0, 1]: Loshchilov & Hutter, arXiv:1608.03983."""
    return peak * (1 + cos(pi * done)) / 2


def train(model: DigitsNet, samples: Samples, *, steps: int, batch_size: int,
          learning_rate: float, seed: int, eager: bool) -> Iterator[Step]:
    """Train for `steps` steps of Adam (Kingma & Ba 2014, arXiv:1412.6980), one per item."""
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    train_step = make_step(model, optimizer, eager)
    rng = np.random.default_rng(seed)
    number = 0
    while number < steps:
        for batch in batches(samples, batch_size, rng):
            start = perf_counter()
            optimizer.learning_rate = cosine_decay(learning_rate, number / steps)
            loss = float(train_step(tf.constant(batch.images), tf.constant(batch.labels)))
            number += 1
            yield Step(number, loss, perf_counter() - start)
            if number == steps:
                return

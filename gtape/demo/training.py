"""The training loop of the digits, and what the tape of one step keeps for the way back."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import gtape as tf
from gtape.demo.data import Samples, batches
from gtape.demo.model import DigitsNet
from gtape.demo.step import make_step, mean_loss

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor


class TrainingStep(NamedTuple):
    """One optimizer step: its number from 1, the loss before it, its wall time."""

    number: int
    loss: float
    seconds: float


def batch_loss(model: DigitsNet, batch: Samples) -> Tensor:
    """`mean_loss` of a batch."""
    return mean_loss(model, tf.constant(batch.images), tf.constant(batch.labels))


def steps_per_epoch(samples: Samples, batch_size: int) -> int:
    return len(samples) // batch_size


def cosine_decay(peak: float, done: float) -> float:
    """peak (1 + cos(pi done)) / 2 for done in [0, 1]: Loshchilov & Hutter, arXiv:1608.03983."""
    return peak * (1 + cos(pi * done)) / 2


def train(model: DigitsNet, samples: Samples, *, steps: int, batch_size: int,
          learning_rate: float, seed: int, eager: bool) -> Iterator[TrainingStep]:
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
            yield TrainingStep(number, loss, perf_counter() - start)
            if number == steps:
                return


class HeldBytes(NamedTuple):
    """One operation on the tape, the line that called it, and the bytes kept for its gradient."""

    op: str
    place: str
    source: str
    bytes: int


def bill(model: DigitsNet, batch: Samples) -> list[HeldBytes]:
    """The rows of `tape.memory()` for one step, in the order of recording."""
    with tf.GradientTape() as tape:
        batch_loss(model, batch)
    return [HeldBytes(row.op, f"{Path(row.site.file).name}:{row.site.line}", row.site.text,
                      row.bytes)
            for row in tape.memory()]

"""One training step of a classifier, written out with GradientTape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gtape as tf

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor


def mean_loss(model: Any, inputs: Tensor, targets: Tensor) -> Tensor:
    """Mean softmax cross entropy of the model's logits, in nats: a scalar tensor."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=model(inputs))
    return tf.reduce_mean(losses)


def make_step(model: Any, optimizer: Any, eager: bool) -> Callable[[Any, Any], Any]:
    """A function of inputs and targets that updates the model and gives the loss before it."""
    def train_step(inputs: Tensor, targets: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            loss = mean_loss(model, inputs, targets)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return train_step if eager else tf.function(train_step)

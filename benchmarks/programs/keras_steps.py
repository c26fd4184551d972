"""A custom training step of Keras: as each engine's own users write and compile it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs.keras_models import Problem, keras_of


def step(column: str, problem: Problem, batch: int) -> Callable[[], float]:
    """One step of Adam on one batch, compiled where the engine compiles; gives the loss."""
    keras = keras_of(column)
    keras.utils.set_random_seed(0)
    x, y = problem.data(batch)
    model, loss = problem.build(keras), problem.loss(keras)
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    made = {"gtape": _tape, "tensorflow": _tape, "jax": _jax, "torch": _torch}[column]
    return made(column, model, loss, optimizer, x, y)


def _tape(column: str, model: Any, loss: Any, optimizer: Any, x: np.ndarray,
          y: np.ndarray) -> Callable[[], float]:
    if column == "gtape":
        import gtape as tf
    else:
        import tensorflow as tf

    @tf.function
    def run(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
        return value

    inputs, labels = tf.constant(x), tf.constant(y)
    return lambda: run(inputs, labels)


def _jax(column: str, model: Any, loss: Any, optimizer: Any, x: np.ndarray,
         y: np.ndarray) -> Callable[[], float]:
    import jax
    import jax.numpy as jnp

    def value(trainable: Any, others: Any, x: Any, y: Any) -> Any:
        predicted, others = model.stateless_call(trainable, others, x, training=True)
        return loss(y, predicted), others

    gradient = jax.value_and_grad(value, has_aux=True)

    @jax.jit
    def run(state: Any, x: Any, y: Any) -> Any:
        trainable, others, slots = state
        (found, others), gradients = gradient(trainable, others, x, y)
        trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
        return found, (trainable, others, slots)

    held = [[[v.value for v in model.trainable_variables],
             [v.value for v in model.non_trainable_variables],
             [v.value for v in optimizer.variables]]]
    inputs, labels = jnp.asarray(x), jnp.asarray(y)

    def once() -> Any:
        found, held[0] = run(held[0], inputs, labels)
        return found.block_until_ready()

    return once


def _torch(column: str, model: Any, loss: Any, optimizer: Any, x: np.ndarray,
           y: np.ndarray) -> Callable[[], float]:
    import torch

    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    variables = model.trainable_variables

    def once() -> Any:
        model.zero_grad()
        value = loss(labels, model(inputs, training=True))
        value.backward()
        gradients = [v.value.grad for v in variables]
        with torch.no_grad():
            optimizer.apply(gradients, variables)
        return value.detach()

    return once

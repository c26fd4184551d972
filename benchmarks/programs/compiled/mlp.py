"""W3 and W4: a training step of a multilayer perceptron, the optimizer within it."""

from __future__ import annotations

from typing import Any

from benchmarks.programs.compiled import jax_training, torch_training
from benchmarks.programs.compiled.check import losses_program
from benchmarks.programs.compiled.columns import Compile, Run, Writers, adds_epsilon_late
from benchmarks.programs.mlp_problem import (
    BETA1,
    BETA2,
    EPSILON,
    RATE,
    Problem,
    classification,
    reference_losses,
    regression,
)
from benchmarks.programs.program import Program

PROBLEMS = {"W3": regression, "W4": classification}
CHECKED_STEPS = 5


def tape(tf: Any, function: Compile, problem: Problem) -> Run:
    w1, b1, w2, b2, w3, b3 = variables = [tf.Variable(p) for p in problem.parameters]
    batches = problem.batches(tf.constant)
    optimizer = tf.keras.optimizers.Adam(RATE, BETA1, BETA2, EPSILON)
    optimizer.build(variables)

    @function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.matmul(x, w1) + b1)
            h = tf.nn.relu(tf.matmul(h, w2) + b2)
            out = tf.matmul(h, w3) + b3
            if problem.classes:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=out)
            else:
                losses = tf.square(out - y)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return lambda: step(*next(batches))


def torch(compile: Compile | None, problem: Problem) -> Run:
    import torch
    from torch.nn import functional

    def convert(array: Any) -> Any:
        tensor = torch.from_numpy(array)
        return tensor if tensor.is_floating_point() else tensor.long()

    loss_from = functional.cross_entropy if problem.classes else functional.mse_loss

    def loss_of(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = torch.relu(torch.addmm(b1, x, w1))
        h = torch.relu(torch.addmm(b2, h, w2))
        return loss_from(torch.addmm(b3, h, w3), y)

    batches = problem.batches(convert)
    if compile is None:
        step = torch_training.eager_step(loss_of, problem.parameters)
    elif problem.classes:
        step = torch_training.compiled_gradients_step(compile, loss_of, problem.parameters)
    else:
        step = torch_training.compiled_step(compile, loss_of, problem.parameters)
    return lambda: step(*next(batches))


def jax(problem: Problem) -> Run:
    import jax
    import jax.numpy as jnp

    def loss_of(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = jax.nn.relu(x @ w1 + b1)
        h = jax.nn.relu(h @ w2 + b2)
        out = h @ w3 + b3
        if not problem.classes:
            return jnp.mean((out - y) ** 2)
        logs = jax.nn.log_softmax(out)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))

    batches = problem.batches(jnp.asarray)
    step = jax_training.compiled_step(loss_of, problem.parameters)
    return lambda: step(*next(batches))


def program(column: str, name: str) -> Program:
    problem = PROBLEMS[name]()
    writers = Writers(
        lambda tf, function: tape(tf, function, problem),
        lambda compile: torch(compile, problem),
        lambda: jax(problem),
    )
    expected = reference_losses(problem, CHECKED_STEPS, late=adds_epsilon_late(column))
    return losses_program(writers.run_of(column), expected)

"""W8: a training step of a character-level GPT, AdamW within it."""

from __future__ import annotations

from typing import Any

from benchmarks.programs.compiled import jax_training, torch_training
from benchmarks.programs.compiled.check import losses_program
from benchmarks.programs.compiled.columns import Compile, Run, Writers, adds_epsilon_late
from benchmarks.programs.compiled.gpt_problem import DECAY, SIZES, Problem, reference_losses
from benchmarks.programs.compiled.transformer import JaxWords, TapeWords, TorchWords
from benchmarks.programs.mlp_problem import BETA1, BETA2, EPSILON, RATE
from benchmarks.programs.program import Program

TOKENS = SIZES.batch * SIZES.time
CHECKED_STEPS = 3
RTOL = 1e-5  # what the weight decay changes within these steps is three times as much


def logits_of(words: Any, gelu: Any, x: Any, parameters: list[Any]) -> Any:
    """From embedded rows to logits; the text is the same for all."""
    blocks, (gain, shift, kernel, bias) = parameters[2:-4], parameters[-4:]
    for i in range(0, len(blocks), 12):
        norm1, norm2 = blocks[i : i + 2], blocks[i + 6 : i + 8]
        projection, last = blocks[i + 2 : i + 4], blocks[i + 4 : i + 6]
        up, down = blocks[i + 8 : i + 10], blocks[i + 10 : i + 12]
        x = x + words.dense(words.attention(words.norm(x, *norm1), *projection), *last)
        x = x + words.dense(gelu(words.dense(words.norm(x, *norm2), *up)), *down)
    return words.dense(words.norm(x, gain, shift), kernel, bias)


def tape(tf: Any, function: Compile, problem: Problem) -> Run:
    words = TapeWords(tf, SIZES)
    variables = [tf.Variable(p) for p in problem.parameters]
    batches = problem.batches(tf.constant)
    optimizer = tf.keras.optimizers.AdamW(RATE, DECAY, BETA1, BETA2, EPSILON)
    optimizer.build(variables)

    def gelu(x: Any) -> Any:
        return tf.nn.gelu(x, approximate=True)

    @function
    def step(tokens: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            x = tf.gather(variables[0], tokens) + variables[1]
            rows = tf.reshape(x, (TOKENS, SIZES.width))
            logits = logits_of(words, gelu, rows, variables)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.reshape(targets, (TOKENS,)), logits=logits
            )
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return lambda: step(*next(batches))


def torch(compile: Compile | None, problem: Problem) -> Run:
    import torch
    from torch.nn import functional

    words = TorchWords(SIZES)

    def gelu(x: Any) -> Any:
        return functional.gelu(x, approximate="tanh")

    def loss_of(parameters: list[Any], tokens: Any, targets: Any) -> Any:
        x = functional.embedding(tokens, parameters[0]) + parameters[1]
        logits = logits_of(words, gelu, x.view(TOKENS, SIZES.width), parameters)
        return functional.cross_entropy(logits, targets.view(TOKENS))

    batches = problem.batches(lambda a: torch.from_numpy(a).long())
    if compile is None:
        step = torch_training.eager_step(loss_of, problem.parameters, DECAY)
    else:
        step = torch_training.compiled_gradients_step(compile, loss_of, problem.parameters, DECAY)
    return lambda: step(*next(batches))


def jax(problem: Problem) -> Run:
    import jax
    import jax.numpy as jnp

    words = JaxWords(SIZES)

    def loss_of(parameters: list[Any], tokens: Any, targets: Any) -> Any:
        x = parameters[0][tokens] + parameters[1]
        logits = logits_of(words, jax.nn.gelu, x.reshape(TOKENS, SIZES.width), parameters)
        logs = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(logs, targets.reshape(TOKENS, 1), axis=1))

    batches = problem.batches(jnp.asarray)
    step = jax_training.compiled_step(loss_of, problem.parameters, DECAY)
    return lambda: step(*next(batches))


def program(column: str, _name: str) -> Program:
    problem = Problem.random()
    writers = Writers(
        lambda tf, function: tape(tf, function, problem),
        lambda compile: torch(compile, problem),
        lambda: jax(problem),
    )
    expected = reference_losses(problem, CHECKED_STEPS, late=adds_epsilon_late(column))
    return losses_program(writers.run_of(column), expected, RTOL)

"""W6: a layer norm and an attention block, y = x + attention(norm(x)); the mean of y² with its
gradients by x and by every parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.compiled import transformer_reference as exact
from benchmarks.programs.compiled.check import gradients_program
from benchmarks.programs.compiled.columns import Compile, Run, Writers
from benchmarks.programs.compiled.transformer import (
    JaxWords,
    Sizes,
    TapeWords,
    TorchWords,
    dense_parameters,
    norm_parameters,
    normal,
)
from benchmarks.programs.program import Program

SIZES = Sizes(batch=8, time=128, width=256, heads=4)


def inputs_of(s: Sizes) -> list[np.ndarray]:
    """x, the norm's gain and shift, kernel and bias of queries, keys and values, and the last's."""
    rng = np.random.default_rng(6)
    x = normal(rng, s.batch * s.time, s.width)
    norm = norm_parameters(rng, s.width)
    projection = dense_parameters(rng, s.width, 3 * s.width)
    return [x, *norm, *projection, *dense_parameters(rng, s.width, s.width)]


def block(words: Any, inputs: Any) -> Any:
    """The block's text, the same for all."""
    x, gain, shift, kernel, bias, last_kernel, last_bias = inputs
    heads = words.attention(words.norm(x, gain, shift), kernel, bias)
    return x + words.dense(heads, last_kernel, last_bias)


def tape(tf: Any, function: Compile, values: list[np.ndarray]) -> Run:
    words = TapeWords(tf, SIZES)
    x = tf.constant(values[0])
    variables = [tf.Variable(value) for value in values[1:]]

    @function
    def value_and_gradients(x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_mean(tf.square(block(words, [x, *variables])))
        return y, tape.gradient(y, [x, *variables])

    return lambda: value_and_gradients(x)


def torch(compile: Compile | None, values: list[np.ndarray]) -> Run:
    import torch

    words = TorchWords(SIZES)
    inputs = [torch.tensor(value, requires_grad=compile is None) for value in values]

    def value_of(inputs: list[Any]) -> Any:
        return block(words, inputs).square().mean()

    if compile is None:

        def eager() -> tuple[Any, Any]:
            y = value_of(inputs)
            return y, torch.autograd.grad(y, inputs)

        return eager
    gradients_and_value = compile(torch.func.grad_and_value(value_of))
    return lambda: gradients_and_value(inputs)[::-1]


def jax(values: list[np.ndarray]) -> Run:
    import jax
    import jax.numpy as jnp

    words = JaxWords(SIZES)
    inputs = [jnp.asarray(value) for value in values]
    value_and_gradients = jax.jit(
        jax.value_and_grad(lambda inputs: jnp.mean(block(words, inputs) ** 2))
    )
    return lambda: jax.block_until_ready(value_and_gradients(inputs))


def reference(values: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """The value and all gradients in float64."""
    x, gain, shift, kernel, bias, *last = (value.astype(np.float64) for value in values)
    unit, norm_rule = exact.norm(x, gain, shift)
    heads, attention_rule = exact.attention(SIZES, unit, kernel, bias)
    added, last_rule = exact.dense(heads, *last)
    y = x + added
    g = 2 * y / y.size
    of_heads, of_last = last_rule(g)
    of_unit, of_projection = attention_rule(of_heads)
    of_x, of_norm = norm_rule(of_unit)
    return np.mean(y * y), [g + of_x, *of_norm, *of_projection, *of_last]


def program(column: str, _name: str) -> Program:
    values = inputs_of(SIZES)
    writers = Writers(
        lambda tf, function: tape(tf, function, values),
        lambda compile: torch(compile, values),
        lambda: jax(values),
    )
    return gradients_program(writers.run_of(column), *reference(values))

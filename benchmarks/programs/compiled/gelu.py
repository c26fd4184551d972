"""W5: y = sum(gelu(a x + b) sigmoid(x)) with its gradients by x, a and b; gelu by tanh
(Hendrycks and Gimpel, arXiv:1606.08415)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.compiled.check import gradients_program
from benchmarks.programs.compiled.columns import Compile, Run, Writers
from benchmarks.programs.program import Program

SIZES = {"1M": 1_000_000, "16M": 16_000_000}
A, B = 0.9, 0.2


def tape(tf: Any, function: Compile, x_value: np.ndarray) -> Run:
    x, a, b = tf.constant(x_value), tf.constant(A), tf.constant(B)

    @function
    def value_and_gradients(x: Any, a: Any, b: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch((x, a, b))
            y = tf.reduce_sum(tf.nn.gelu(x * a + b, approximate=True) * tf.sigmoid(x))
        return y, tape.gradient(y, (x, a, b))

    return lambda: value_and_gradients(x, a, b)


def torch(compile: Compile | None, x_value: np.ndarray) -> Run:
    import torch
    from torch.nn import functional

    def value(x: Any, a: Any, b: Any) -> Any:
        return (functional.gelu(x * a + b, approximate="tanh") * torch.sigmoid(x)).sum()

    inputs = [torch.tensor(x_value), torch.tensor(A), torch.tensor(B)]
    if compile is None:
        for tensor in inputs:
            tensor.requires_grad_()

        def eager() -> tuple[Any, Any]:
            y = value(*inputs)
            return y, torch.autograd.grad(y, inputs)

        return eager
    gradients_and_value = compile(torch.func.grad_and_value(value, argnums=(0, 1, 2)))
    return lambda: gradients_and_value(*inputs)[::-1]


def jax(x_value: np.ndarray) -> Run:
    import jax
    import jax.numpy as jnp

    def value(x: Any, a: Any, b: Any) -> Any:
        return jnp.sum(jax.nn.gelu(x * a + b, approximate=True) * jax.nn.sigmoid(x))

    inputs = jnp.asarray(x_value), jnp.float32(A), jnp.float32(B)
    value_and_gradients = jax.jit(jax.value_and_grad(value, argnums=(0, 1, 2)))
    return lambda: jax.block_until_ready(value_and_gradients(*inputs))


def reference(x_value: np.ndarray) -> tuple[float, list[Any]]:
    """The value and the gradients by x, a and b in float64, a million elements at a time."""
    y = by_a = by_b = 0.0
    by_x = np.empty(x_value.shape)
    a, b = float(np.float32(A)), float(np.float32(B))
    scale = np.sqrt(2 / np.pi)
    for start in range(0, len(x_value), 1_000_000):
        block = slice(start, start + 1_000_000)
        x = x_value[block].astype(np.float64)
        z, s = x * a + b, 1 / (1 + np.exp(-x))
        t = np.tanh(scale * (z + 0.044715 * z**3))
        slope = (1 + t + z * (1 - t * t) * scale * (1 + 0.134145 * z * z)) / 2 * s
        value = z * (1 + t) / 2 * s
        y, by_a, by_b = y + value.sum(), by_a + (slope * x).sum(), by_b + slope.sum()
        by_x[block] = slope * a + value * (1 - s)
    return y, [by_x, by_a, by_b]


def program(column: str, size: str) -> Program:
    x = np.random.default_rng(5).normal(size=SIZES[size]).astype(np.float32)
    writers = Writers(
        lambda tf, function: tape(tf, function, x),
        lambda compile: torch(compile, x),
        lambda: jax(x),
    )
    return gradients_program(writers.run_of(column), *reference(x))

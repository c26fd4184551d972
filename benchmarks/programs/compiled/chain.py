"""W1: the value and the gradient of a chain of 20 small operations in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.chain import A, B, Body, jax_chain, reference, small_ops, torch_chain
from benchmarks.programs.compiled.check import gradients_program
from benchmarks.programs.compiled.columns import Compile, Run, Writers
from benchmarks.programs.program import Program

INPUTS = {
    "()": np.array(0.3, np.float32),
    "(10,)": np.linspace(-1, 1, 10, dtype=np.float32),
}


def tape(tf: Any, function: Compile, body: Body, x_value: np.ndarray) -> Run:
    x, a, b = tf.constant(x_value), tf.constant(A), tf.constant(B)

    @function
    def value_and_gradient(x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = body(tf, x, a, b)
        return y, tape.gradient(y, x)

    return lambda: value_and_gradient(x)


def torch(compile: Compile | None, body: Body, x_value: np.ndarray) -> Run:
    import torch

    if compile is None:
        return torch_chain(body, x_value).gradient
    x, a, b = torch.tensor(x_value), torch.tensor(A), torch.tensor(B)
    seed = torch.ones_like(x)

    @compile
    def value_and_gradient(x: Any) -> tuple[Any, Any]:
        y, back = torch.func.vjp(lambda x: body(torch, x, a, b), x)
        return y, back(seed)[0]

    return lambda: value_and_gradient(x)


def writers(body: Body, x: np.ndarray) -> Writers:
    return Writers(
        lambda tf, function: tape(tf, function, body, x),
        lambda compile: torch(compile, body, x),
        lambda: jax_chain(body, x, compiled=True).gradient,
    )


def program(column: str, shape: str) -> Program:
    x = INPUTS[shape]
    value, derivative = reference(small_ops, x)
    return gradients_program(writers(small_ops, x).run_of(column), value, [derivative])

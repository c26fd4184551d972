"""W7: two convolutions, pooling and a dense layer: the loss and the gradients of all parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.compiled.check import gradients_program
from benchmarks.programs.compiled.columns import TORCH, TORCH_COMPILE, Compile, Run, Writers
from benchmarks.programs.compiled.conv_problem import Problem, reference
from benchmarks.programs.program import Program

RTOL = 1e-3  # of two nearly equal numbers under a maximum, float32 may choose the other


def tape(tf: Any, function: Compile, problem: Problem) -> Run:
    variables = [tf.Variable(p) for p in problem.parameters]
    images, labels = tf.constant(problem.images), tf.constant(problem.labels)

    @function
    def value_and_gradients(images: Any, labels: Any) -> tuple[Any, Any]:
        kernel1, bias1, kernel2, bias2, kernel, bias = variables
        with tf.GradientTape() as tape:
            h = tf.nn.relu(tf.nn.conv2d(images, kernel1, strides=1, padding="VALID") + bias1)
            h = tf.nn.relu(tf.nn.conv2d(h, kernel2, strides=1, padding="VALID") + bias2)
            h = tf.nn.max_pool2d(h, ksize=2, strides=2, padding="VALID")
            logits = tf.matmul(tf.reshape(h, (problem.batch, -1)), kernel) + bias
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        return loss, tape.gradient(loss, variables)

    return lambda: value_and_gradients(images, labels)


def torch(compile: Compile | None, problem: Problem) -> Run:
    """Images and kernels with their channels last in memory, as the images come."""
    import torch
    from torch.nn import functional

    def loss_of(parameters: list[Any], images: Any, labels: Any) -> Any:
        kernel1, bias1, kernel2, bias2, kernel, bias = parameters
        h = torch.relu(functional.conv2d(images, kernel1, bias1))
        h = torch.relu(functional.conv2d(h, kernel2, bias2))
        h = functional.max_pool2d(h, 2).permute(0, 2, 3, 1).flatten(1)
        return functional.cross_entropy(torch.addmm(bias, h, kernel), labels)

    def convert(value: np.ndarray) -> Any:
        tensor = torch.tensor(value)
        if tensor.dim() < 4:
            return tensor
        return tensor.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    parameters = [convert(p) for p in problem.parameters]
    images = torch.tensor(problem.images).permute(0, 3, 1, 2)
    labels = torch.tensor(problem.labels).long()
    if compile is None:
        for parameter in parameters:
            parameter.requires_grad_()

        def eager() -> tuple[Any, Any]:
            loss = loss_of(parameters, images, labels)
            return loss, torch.autograd.grad(loss, parameters)

        return eager
    gradients_and_loss = compile(torch.func.grad_and_value(loss_of))
    return lambda: gradients_and_loss(parameters, images, labels)[::-1]


def jax(problem: Problem) -> Run:
    import jax
    import jax.numpy as jnp

    def conv(x: Any, kernel: Any, bias: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=layout)
        return jax.nn.relu(y + bias)

    def loss_of(parameters: list[Any], images: Any, labels: Any) -> Any:
        kernel1, bias1, kernel2, bias2, kernel, bias = parameters
        h = conv(conv(images, kernel1, bias1), kernel2, bias2)
        window = (1, 2, 2, 1)
        h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, window, window, "VALID")
        logs = jax.nn.log_softmax(h.reshape(problem.batch, -1) @ kernel + bias)
        return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))

    inputs = [jnp.asarray(p) for p in problem.parameters]
    images, labels = jnp.asarray(problem.images), jnp.asarray(problem.labels)
    value_and_gradients = jax.jit(jax.value_and_grad(loss_of))
    return lambda: jax.block_until_ready(value_and_gradients(inputs, images, labels))


def program(column: str, size: str) -> Program:
    problem = Problem.of(int(size.partition("x")[0]))
    writers = Writers(
        lambda tf, function: tape(tf, function, problem),
        lambda compile: torch(compile, problem),
        lambda: jax(problem),
    )
    loss, gradients = reference(problem)
    if column in (TORCH.column, TORCH_COMPILE.column):
        gradients = [g.transpose(3, 2, 0, 1) if g.ndim == 4 else g for g in gradients]
    return gradients_program(writers.run_of(column), loss, gradients, RTOL)

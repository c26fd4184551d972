"""W3 and W4: the training step as each peer's users write it, from layers and written out."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

from benchmarks.programs.mlp_problem import (
    BETA1,
    BETA2,
    EPSILON,
    RATE,
    Adam,
    Problem,
    Step,
    numpy_step,
)

LAYERS, WRITTEN_OUT = "layers", "written out"


def keras_step(tf: Any, problem: Problem) -> Step:
    """tf.keras layers, loss and optimizer; `tf` is tensorflow or gtape."""
    hidden, out = problem.sizes[1:-1], problem.sizes[-1]
    dense = tf.keras.layers.Dense
    model = tf.keras.Sequential([dense(n, activation="relu") for n in hidden] + [dense(out)])
    batches = problem.batches(tf.constant)
    model(tf.constant(problem.xs[0]))
    for variable, value in zip(model.trainable_variables, problem.parameters, strict=True):
        variable.assign(value)
    if problem.classes:
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    else:
        loss_of = tf.keras.losses.MeanSquaredError()
    optimizer = tf.keras.optimizers.Adam(RATE, BETA1, BETA2, EPSILON)

    def step() -> Any:
        x, y = next(batches)
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def tape_step(tf: Any, problem: Problem) -> Step:
    """Variables and matrix products written out; `tf` is tensorflow or gtape."""
    w1, b1, w2, b2, w3, b3 = variables = [tf.Variable(p) for p in problem.parameters]
    batches = problem.batches(tf.constant)
    optimizer = tf.keras.optimizers.Adam(RATE, BETA1, BETA2, EPSILON)

    def step() -> Any:
        x, y = next(batches)
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

    return step


def torch_steps(problem: Problem) -> dict[str, Callable[[], Step]]:
    """torch.nn modules, and tensors with matrix products; both with torch.optim.Adam."""
    import torch
    from torch.nn import functional

    def convert(array: Any) -> Any:
        tensor = torch.from_numpy(array)
        return tensor if tensor.is_floating_point() else tensor.long()

    loss_of = functional.cross_entropy if problem.classes else functional.mse_loss

    def step_of(network: Callable[[Any], Any], parameters: list[Any]) -> Step:
        optimizer = torch.optim.Adam(parameters, RATE, (BETA1, BETA2), EPSILON)
        batches = problem.batches(convert)

        def step() -> Any:
            x, y = next(batches)
            optimizer.zero_grad()
            loss = loss_of(network(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    def layers() -> Step:
        modules: list[Any] = []
        for i, (rows, columns) in enumerate(pairwise(problem.sizes)):
            linear = torch.nn.Linear(rows, columns)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(problem.parameters[2 * i].T.copy()))
                linear.bias.zero_()
            modules += [linear, torch.nn.ReLU()]
        model = torch.nn.Sequential(*modules[:-1])
        return step_of(model, list(model.parameters()))

    def written_out() -> Step:
        parameters = [torch.tensor(p, requires_grad=True) for p in problem.parameters]
        w1, b1, w2, b2, w3, b3 = parameters

        def network(x: Any) -> Any:
            h = torch.relu(x @ w1 + b1)
            h = torch.relu(h @ w2 + b2)
            return h @ w3 + b3

        return step_of(network, parameters)

    return {LAYERS: layers, WRITTEN_OUT: written_out}


def jax_step(problem: Problem, *, compiled: bool) -> Step:
    """jax.value_and_grad and Adam on a list of arrays; compiled as one, its state donated."""
    import jax
    import jax.numpy as jnp

    batches = problem.batches(jnp.asarray)

    def loss_of(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = jax.nn.relu(x @ w1 + b1)
        h = jax.nn.relu(h @ w2 + b2)
        out = h @ w3 + b3
        if not problem.classes:
            return jnp.mean((out - y) ** 2)
        logs = jax.nn.log_softmax(out)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))

    def update(state: Any, x: Any, y: Any) -> Any:
        parameters, means, squares, count = state
        loss, slopes = jax.value_and_grad(loss_of)(parameters, x, y)
        count = count + 1
        means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, slopes)
        squares = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, slopes)
        rate = RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
        parameters = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, means, squares
        )
        return loss, (parameters, means, squares, count)

    if compiled:
        update = jax.jit(update, donate_argnums=0)
    start = [jnp.array(p) for p in problem.parameters]
    means, squares = jax.tree.map(jnp.zeros_like, start), jax.tree.map(jnp.zeros_like, start)
    state = (start, means, squares, jnp.float32(0))

    def step() -> Any:
        nonlocal state
        loss, state = update(state, *next(batches))
        jax.block_until_ready(state)
        return loss

    return step


def autograd_step(problem: Problem) -> Step:
    """autograd.value_and_grad, and Adam in NumPy."""
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    batches = problem.batches(lambda a: a)
    rows = anp.arange(problem.xs.shape[1])

    def loss_of(parameters: list[Any], x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = anp.maximum(x @ w1 + b1, 0)
        h = anp.maximum(h @ w2 + b2, 0)
        out = h @ w3 + b3
        if not problem.classes:
            return anp.mean((out - y) ** 2)
        return anp.mean(logsumexp(out, axis=1) - out[rows, y])

    parameters = [p.copy() for p in problem.parameters]
    loss_and_gradients = autograd.value_and_grad(loss_of)
    adam = Adam(parameters)

    def step() -> Any:
        loss, slopes = loss_and_gradients(parameters, *next(batches))
        adam.update(slopes)
        return loss

    return step


def steps_of(peer: str, problem: Problem) -> dict[str, Callable[[], Step]]:
    """A maker of fresh training steps for each way `peer` has of writing them."""
    if peer == "numpy":
        return {WRITTEN_OUT: lambda: numpy_step(problem)}
    if peer == "torch":
        return torch_steps(problem)
    if peer in ("jax", "jax jit"):
        return {WRITTEN_OUT: lambda: jax_step(problem, compiled=peer == "jax jit")}
    if peer == "autograd":
        return {WRITTEN_OUT: lambda: autograd_step(problem)}
    tf = import_module(peer)
    return {
        LAYERS: lambda: keras_step(tf, problem),
        WRITTEN_OUT: lambda: tape_step(tf, problem),
    }

"""W9: a Jacobian, a batch of them, and a Hessian, each in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.compiled.check import checked
from benchmarks.programs.compiled.columns import Compile, Run, Writers
from benchmarks.programs.compiled.transformer import dense_parameters, normal
from benchmarks.programs.program import Program, require_close

JACOBIAN, BATCH_JACOBIAN, HESSIAN = "jacobian", "batch_jacobian", "hessian"
UNITS, BATCH, INPUTS = 100, 32, 200


def inputs_of(kind: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """x and the parameters: of the network w2 tanh(w1 x + b1) + b2, or of sum(v tanh(w x + b))."""
    rng = np.random.default_rng(9)
    if kind == HESSIAN:
        return normal(rng, INPUTS), [*dense_parameters(rng, INPUTS, INPUTS), normal(rng, INPUTS)]
    first, second = (dense_parameters(rng, UNITS, UNITS) for _ in range(2))
    shape = (UNITS,) if kind == JACOBIAN else (BATCH, UNITS)
    return normal(rng, *shape), first + second


def tape(tf: Any, function: Compile, kind: str) -> Run:
    x_value, parameters = inputs_of(kind)
    x, variables = tf.constant(x_value), [tf.Variable(p) for p in parameters]

    def network(rows: Any) -> Any:
        w1, b1, w2, b2 = variables
        return tf.matmul(tf.tanh(tf.matmul(rows, w1) + b1), w2) + b2

    @function
    def jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = network(x[None])[0]
        return tape.jacobian(y, x)

    @function
    def batch_jacobian(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = network(x)
        return tape.batch_jacobian(y, x)

    @function
    def hessian(x: Any) -> Any:
        w, b, v = variables
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(v * tf.tanh(tf.linalg.matvec(w, x, transpose_a=True) + b))
            slope = inner.gradient(y, x)
        return outer.jacobian(slope, x)

    chosen = {JACOBIAN: jacobian, BATCH_JACOBIAN: batch_jacobian, HESSIAN: hessian}[kind]
    return lambda: chosen(x)


def texts(tanh: Any) -> tuple[Any, Any]:
    """The two functions of a vector, as torch and JAX differentiate them."""

    def network(x: Any, parameters: list[Any]) -> Any:
        w1, b1, w2, b2 = parameters
        return tanh(x @ w1 + b1) @ w2 + b2

    def scalar(x: Any, parameters: list[Any]) -> Any:
        w, b, v = parameters
        return (v * tanh(x @ w + b)).sum()

    return network, scalar


def torch(compile: Compile | None, kind: str) -> Run:
    import torch
    from torch import func

    x_value, values = inputs_of(kind)
    x, parameters = torch.tensor(x_value), [torch.tensor(p) for p in values]
    network, scalar = texts(torch.tanh)
    made = {
        JACOBIAN: func.jacrev(network),
        BATCH_JACOBIAN: func.vmap(func.jacrev(network), in_dims=(0, None)),
        HESSIAN: func.hessian(scalar),
    }
    chosen = made[kind] if compile is None else compile(made[kind])
    return lambda: chosen(x, parameters)


def jax(kind: str) -> Run:
    import jax
    import jax.numpy as jnp

    x_value, values = inputs_of(kind)
    x, parameters = jnp.asarray(x_value), [jnp.asarray(p) for p in values]
    network, scalar = texts(jnp.tanh)
    made = {
        JACOBIAN: jax.jacrev(network),
        BATCH_JACOBIAN: jax.vmap(jax.jacrev(network), in_axes=(0, None)),
        HESSIAN: jax.hessian(scalar),
    }
    chosen = jax.jit(made[kind])
    return lambda: jax.block_until_ready(chosen(x, parameters))


def reference(kind: str) -> np.ndarray:
    """The derivatives in float64, by hand."""
    x_value, parameters = inputs_of(kind)
    x, constants = x_value.astype(np.float64), [p.astype(np.float64) for p in parameters]
    if kind == HESSIAN:
        w, b, v = constants
        t = np.tanh(x @ w + b)
        return (w * (-2 * v * t * (1 - t * t))) @ w.T
    w1, b1, w2, _ = constants
    t = np.tanh(x @ w1 + b1)
    return np.einsum("...h,ih,ho->...oi", 1 - t * t, w1, w2, optimize=True)


def program(column: str, kind: str) -> Program:
    writers = Writers(
        lambda tf, function: tape(tf, function, kind),
        lambda compile: torch(compile, kind),
        lambda: jax(kind),
    )
    expected = reference(kind)
    return checked(
        writers.run_of(column), lambda results: require_close(results[0], expected, kind)
    )

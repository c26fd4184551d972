"""Adam and AdamW for JAX, on lists of arrays (Kingma & Ba 2015, arXiv:1412.6980, its form with
epsilon before the bias correction; Loshchilov & Hutter 2019, arXiv:1711.05101)."""

from __future__ import annotations

from typing import Any

from benchmarks.programs.mlp_problem import BETA1, BETA2, EPSILON, RATE


def start(jax: Any, parameters: list[Any]) -> Any:
    """The state: parameters, means, squares, and the number of steps."""
    zeros = jax.numpy.zeros_like
    means, squares = [zeros(p) for p in parameters], [zeros(p) for p in parameters]
    return parameters, means, squares, jax.numpy.float32(0)


def update(jax: Any, state: Any, slopes: list[Any], decay: float = 0.0) -> Any:
    """The state after a step."""
    jnp = jax.numpy
    parameters, means, squares, count = state
    count = count + 1
    rate = RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    means = [m + (g - m) * (1 - BETA1) for m, g in zip(means, slopes, strict=True)]
    squares = [v + (g * g - v) * (1 - BETA2) for v, g in zip(squares, slopes, strict=True)]
    parameters = [
        p * (1 - decay * RATE) - rate * m / (jnp.sqrt(v) + EPSILON)
        for p, m, v in zip(parameters, means, squares, strict=True)
    ]
    return parameters, means, squares, count

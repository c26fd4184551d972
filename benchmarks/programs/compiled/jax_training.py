"""JAX's training step: `loss_of(parameters, *batch)` and Adam or AdamW as one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.gpu import jax_adam


def compiled_step(
    loss_of: Callable[..., Any], start: Sequence[np.ndarray], decay: float = 0.0
) -> Callable[..., Any]:
    """The state is donated: parameters and moments are updated where they are."""
    import jax
    import jax.numpy as jnp

    def update(state: Any, *batch: Any) -> Any:
        loss, slopes = jax.value_and_grad(loss_of)(state[0], *batch)
        return loss, jax_adam.update(jax, state, slopes, decay)

    compiled = jax.jit(update, donate_argnums=0)
    state = jax_adam.start(jax, [jnp.array(p) for p in start])

    def step(*batch: Any) -> Any:
        nonlocal state
        loss, state = compiled(state, *batch)
        jax.block_until_ready(state)
        return loss

    return step

"""G1: 200 small elementwise operations, where the arithmetic is nothing and each call counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.data import normal
from benchmarks.gpu.peers import GTAPE, JAX, TORCH, TORCH_COMPILE
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.chain import reference
from benchmarks.programs.program import require_close

ROUNDS, LENGTH = 50, 1024
OPERATIONS = 4 * ROUNDS
A, B, C = 0.5, 0.1, 2.0
FORWARD, BOTH = "forward", "forward + backward"


def body(ops: Any, y: Any, a: Any = A, b: Any = B) -> Any:
    """y <- c tanh(a y + b), 50 times; a c = 1, so that the derivative stays an ordinary number."""
    for _ in range(ROUNDS):
        y = ops.tanh(y * a + b) * C
    return y


class Chain(Workload):
    number = "G1"
    columns = (GTAPE, TORCH, TORCH_COMPILE, JAX)
    sets = 1

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.x = normal((max(2, LENGTH // scale),), seed=1)

    @property
    def title(self) -> str:
        return f"{OPERATIONS} elementwise operations on {self.x.size} float32, each"

    @property
    def phases(self) -> tuple[Phase, ...]:
        marks = (Mark(1.2, TORCH),)
        return (
            Phase(FORWARD, operations=OPERATIONS),
            Phase(BOTH, operations=OPERATIONS, marks=marks),
        )

    def require(self, y: np.ndarray, gradient: np.ndarray) -> None:
        value, slope = reference(body, self.x)
        require_close(y, value, "value")
        require_close(gradient, slope, "gradient", 1e-3)

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        x = peer.put(self.x)

        def both(turn: int) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = body(tf, x)
            return y, tape.gradient(y, x)

        return self._task(peer, lambda turn: body(tf, x), both)

    def torch(self, peer: Any, sets: int) -> Task:
        torch = peer.torch
        constant, x = peer.put(self.x), peer.leaf(self.x)
        seed = torch.ones_like(constant)
        function = peer.compiled(lambda y: body(torch, y))

        def both(turn: int) -> Any:
            y = function(x)
            return y, torch.autograd.grad(y, x, seed)[0]

        return self._task(peer, lambda turn: function(constant), both)

    def jax(self, peer: Any, sets: int) -> Task:
        jax = peer.jax
        x = peer.put(self.x)
        seed = jax.numpy.ones_like(x)

        def pull_back(x: Any) -> Any:
            y, back = jax.vjp(lambda y: body(jax.numpy, y), x)
            return y, back(seed)[0]

        function, both = jax.jit(lambda y: body(jax.numpy, y)), jax.jit(pull_back)
        return self._task(peer, lambda turn: function(x), lambda turn: both(x))

    def _task(self, peer: Any, forward: Any, both: Any) -> Task:
        def check() -> None:
            y, gradient = both(0)
            self.require(peer.get(y), peer.get(gradient))

        return Task({FORWARD: forward, BOTH: both}, check)

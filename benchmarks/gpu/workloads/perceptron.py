"""G5: a training step of a small perceptron, 784-512-512-10: many short kernels in a row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import benchmarks.gpu.jax_adam as jax_adam
from benchmarks.gpu.peers import GTAPE, JAX, TORCH, TORCH_COMPILE, TORCH_GRAPHS
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.mlp_peers import keras_step
from benchmarks.programs.mlp_problem import (
    BETA1,
    BETA2,
    EPSILON,
    RATE,
    classification,
    reference_losses,
)
from benchmarks.programs.program import require_close

PHASE = "step"
CHECKED_STEPS = 5

MakeStep = Callable[[], Callable[[], Any]]


class Perceptron(Workload):
    number = "G5"
    columns = (GTAPE, TORCH, TORCH_COMPILE, TORCH_GRAPHS, JAX)
    tolerance = 1e-4

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.problem = classification()

    @property
    def title(self) -> str:
        floats = "TF32 on" if self.tf32 else "TF32 off"
        return f"MLP 784-512-512-10, batch 128, float32, Adam, {floats}"

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (Phase(PHASE, marks=(Mark(0.3, TORCH_GRAPHS), Mark(0.5, JAX))),)

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        return self._task(peer, lambda: keras_step(tf, self.problem))

    def torch(self, peer: Any, sets: int) -> Task:
        return self._task(peer, lambda: self._torch_step(peer), late=True)

    def _torch_step(self, peer: Any) -> Callable[[], Any]:
        torch, nn = peer.torch, peer.torch.nn
        modules: list[Any] = []
        for i, (rows, columns) in enumerate(pairwise(self.problem.sizes)):
            linear = nn.Linear(rows, columns)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(self.problem.parameters[2 * i].T.copy()))
                linear.bias.zero_()
            modules += [linear, nn.ReLU()]
        model = nn.Sequential(*modules[:-1]).cuda()
        optimizer = torch.optim.Adam(model.parameters(), RATE, (BETA1, BETA2), EPSILON, fused=True)
        batches = self.problem.batches(
            lambda a: peer.put(a.astype(np.int64) if a.dtype == np.int32 else a)
        )
        loss_of = peer.compiled(lambda x, y: nn.functional.cross_entropy(model(x), y))

        def step() -> Any:
            torch.compiler.cudagraph_mark_step_begin()
            x, y = next(batches)
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    def jax(self, peer: Any, sets: int) -> Task:
        return self._task(peer, lambda: self._jax_step(peer))

    def _jax_step(self, peer: Any) -> Callable[[], Any]:
        jax, jnp = peer.jax, peer.jax.numpy
        batches = self.problem.batches(peer.put)

        def loss_of(parameters: list[Any], x: Any, y: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = parameters
            h = jax.nn.relu(x @ w1 + b1)
            h = jax.nn.relu(h @ w2 + b2)
            logs = jax.nn.log_softmax(h @ w3 + b3)
            return -jnp.take_along_axis(logs, y[:, None], axis=1).mean()

        def both(state: Any, x: Any, y: Any) -> Any:
            loss, slopes = jax.value_and_grad(loss_of)(state[0], x, y)
            return loss, jax_adam.update(jax, state, slopes)

        compiled = jax.jit(both, donate_argnums=0)
        state = jax_adam.start(jax, list(map(peer.put, self.problem.parameters)))

        def step() -> Any:
            nonlocal state
            loss, state = compiled(state, *next(batches))
            return loss

        return step

    def _task(self, peer: Any, make: MakeStep, late: bool = False) -> Task:
        step = make()

        def check() -> None:
            # Each loss is read before the next step, whose graph may write over it.
            losses = np.array([float(peer.get(step())) for _ in range(CHECKED_STEPS)])
            expected = reference_losses(self.problem, CHECKED_STEPS, late=late)
            require_close(losses, expected, f"the losses of {CHECKED_STEPS} steps", self.tolerance)

        return Task({PHASE: lambda turn: step()}, check)


class PerceptronTf32(Perceptron):
    number = "G5t"
    tf32 = True
    tolerance = 1e-2

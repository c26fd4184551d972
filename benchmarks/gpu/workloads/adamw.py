"""G6: AdamW on the variables of a GPT-2 with 124 M parameters (arXiv:1711.05101)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import benchmarks.gpu.jax_adam as jax_adam
from benchmarks.gpu.data import normal
from benchmarks.gpu.peers import GTAPE, JAX, KERNELS, TORCH
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.mlp_problem import BETA1, BETA2, EPSILON, RATE, Adam
from benchmarks.programs.program import require_close

PHASE = "step"
DECAY = 0.1
#: Weights and gradient and two moments are read, all but the gradient written: float32.
BYTES_EACH = 28
CHECKED_STEPS, CHECKED_ELEMENTS, TOLERANCE = 3, 512, 1e-5


def shapes(scale: int = 1) -> list[tuple[int, ...]]:
    """Of the 148 tensors: two embeddings, 12 in each of 12 blocks, the last norm's two."""
    width, words = max(4, 768 // scale), max(8, 50257 // scale)
    norm = [(width,), (width,)]
    block: list[tuple[int, ...]] = [*norm]
    for rows, columns in ((width, 3 * width), (width, width)):
        block += [(rows, columns), (columns,)]
    block += norm
    for rows, columns in ((width, 4 * width), (4 * width, width)):
        block += [(rows, columns), (columns,)]
    return [(words, width), (max(4, 1024 // scale), width), *(block * 12), *norm]


class AdamWStep(Workload):
    number = "G6"
    columns = (GTAPE, KERNELS, TORCH, JAX)
    #: One set is many times what any cache holds.
    sets = 1

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.shapes = shapes(scale)
        self.size = sum(map(prod, self.shapes))

    @property
    def title(self) -> str:
        return f"AdamW, {len(self.shapes)} tensors, {self.size / 1e6:.1f} M parameters, float32"

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (Phase(PHASE, bytes=BYTES_EACH * self.size, marks=(Mark(0.85),)),)

    def weights(self) -> list[np.ndarray]:
        return [normal(shape, i) for i, shape in enumerate(self.shapes)]

    def gradients(self) -> list[np.ndarray]:
        return [normal(shape, 1000 + i, scale=0.1) for i, shape in enumerate(self.shapes)]

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        variables = [tf.Variable(w) for w in self.weights()]
        gradients = list(map(peer.put, self.gradients()))
        optimizer = tf.keras.optimizers.AdamW(RATE, DECAY, BETA1, BETA2, EPSILON)

        def step(turn: int) -> None:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        return self._task(step, lambda i: peer.get(variables[i]))

    def kernels(self, peer: Any, sets: int) -> Task:
        """One launch for all tensors."""
        from gtape.devices.cuda.elementwise.maps import DeviceMaps
        from gtape.opdef.scalar_graph import ScalarGraph
        from gtape.ops.elementwise import scalars

        scope = ScalarGraph()
        params = ("w", "g", "m", "v", "rate")
        w, g, m, v, rate = map(scope.input, params)
        m = m + (g - m) * (1 - BETA1)
        v = v + (g * g - v) * (1 - BETA2)
        root = scope.node(scalars.sqrt.op, (v,))
        results = [w * (1 - RATE * DECAY) - rate * m / (root + EPSILON), m, v]
        maps, dtype = DeviceMaps(peer.gpu), np.dtype(np.float32)
        one = maps.make("AdamW", results, params, [dtype] * 5, [dtype] * 3)
        assert one is not None
        update = maps.joined(one, self.shapes, [True] * 4 + [False])
        gradients = list(map(peer.put, self.gradients()))
        state = [a for weight in self.weights()
                 for a in (peer.put(weight), *(peer.put(np.zeros_like(weight)) for _ in range(2)))]
        steps = 0

        def step(turn: int) -> Any:
            nonlocal state, steps
            steps += 1
            rate = RATE * np.sqrt(1 - BETA2**steps) / (1 - BETA1**steps)
            given = peer.put(np.array(rate, np.float32))
            state = update([
                a for i, g in enumerate(gradients)
                for a in (state[3 * i], g, *state[3 * i + 1 : 3 * i + 3], given)])
            return state

        return self._task(step, lambda i: peer.get(state[3 * i]))

    def torch(self, peer: Any, sets: int) -> Task:
        parameters = list(map(peer.leaf, self.weights()))
        for parameter, gradient in zip(parameters, self.gradients(), strict=True):
            parameter.grad = peer.put(gradient)
        optimizer = peer.torch.optim.AdamW(
            parameters, RATE, (BETA1, BETA2), EPSILON, DECAY, fused=True
        )

        def step(turn: int) -> None:
            optimizer.step()

        return self._task(step, lambda i: peer.get(parameters[i]), late=True)

    def jax(self, peer: Any, sets: int) -> Task:
        jax = peer.jax
        gradients = list(map(peer.put, self.gradients()))
        compiled = jax.jit(
            lambda state, slopes: jax_adam.update(jax, state, slopes, DECAY), donate_argnums=0
        )
        state = jax_adam.start(jax, list(map(peer.put, self.weights())))

        def step(turn: int) -> Any:
            nonlocal state
            state = compiled(state, gradients)
            return state

        return self._task(step, lambda i: peer.get(state[0][i]))

    def _task(self, step: Any, weight: Any, late: bool = False) -> Task:
        def check() -> None:
            for _ in range(CHECKED_STEPS):
                step(0)
            start, given = self.weights(), self.gradients()
            # One of every kind of shape, and the last.
            for i in (*range(2, 14), 0, 1, len(start) - 1):
                expected = self._reference(start[i], given[i], late)
                found = weight(i).reshape(-1)[-CHECKED_ELEMENTS:]
                require_close(found, expected, f"tensor {i} after {CHECKED_STEPS} steps", TOLERANCE)

        return Task({PHASE: step}, check)

    def _reference(self, weight: np.ndarray, gradient: np.ndarray, late: bool) -> np.ndarray:
        """The last elements of a tensor after the steps, in float64."""
        w, g = (a.reshape(-1)[-CHECKED_ELEMENTS:].astype(np.float64) for a in (weight, gradient))
        adam = Adam([w], late=late)
        for _ in range(CHECKED_STEPS):
            w *= 1 - RATE * DECAY
            adam.update([g])
        return w

"""G2: gelu(x a + b) + x on a large matrix: memory traffic, and what fusing saves of it.

gelu is the form with tanh (Hendrycks & Gimpel 2016, arXiv:1606.08415), a and b are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

from benchmarks.gpu.data import normal, some
from benchmarks.gpu.peers import GTAPE, JAX, KERNELS, TORCH, TORCH_COMPILE
from benchmarks.gpu.peers.gtape_peer import GtapePeer
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.program import require_close

A, B = 1.25, 0.25
CUBIC = 0.044715
FORWARD, BACKWARD = "forward", "backward"
CHECKED_ROWS, TOLERANCE = 32, 1.6e-2
#: The op of this workload is one of tensors, whichever way it was declared.
TENSORS = GtapePeer()


def gelu(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """gelu(z) in its form with tanh, and its derivative."""
    t = np.tanh(sqrt(2 / pi) * (z + CUBIC * z**3))
    slope = 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * sqrt(2 / pi) * (1 + 3 * CUBIC * z**2)
    return 0.5 * z * (1 + t), slope


class Gelu(Workload):
    number = "G2"
    columns = (GTAPE, KERNELS, TORCH, TORCH_COMPILE, JAX)

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.side = max(4, 8192 // scale)

    @property
    def title(self) -> str:
        return f"gelu(x a + b) + x, {self.side} x {self.side} bfloat16"

    @property
    def phases(self) -> tuple[Phase, ...]:
        size, marks = 2 * self.side**2, (Mark(0.85),)
        return (
            Phase(FORWARD, bytes=2 * size, marks=marks),
            Phase(BACKWARD, bytes=3 * size, marks=marks),
        )

    def inputs(self, turn: int) -> tuple[np.ndarray, np.ndarray]:
        """x, and the cotangent of the result."""
        shape = self.side, self.side
        return normal(shape, 2 * turn, "bfloat16"), normal(shape, 2 * turn + 1, "bfloat16")

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        return self._taped(sets, lambda x: tf.nn.gelu(x * A + B, approximate=True) + x)

    def kernels(self, peer: Any, sets: int) -> Task:
        """The formula declared as one op, so that each way is one launch."""
        from gtape.opdef.eager_functions import unspecialised
        from gtape.opdef.elementwise import ScalarFunction
        from gtape.ops.nn.activations import gelu_tanh_

        return self._taped(
            sets, unspecialised(
                ScalarFunction(lambda x: gelu_tanh_(x * A + B) + x, name="gelu_residual"), ("x",))
        )

    def _taped(self, sets: int, function: Callable[[Any], Any]) -> Task:
        import gtape as tf

        pairs = [tuple(map(TENSORS.put, self.inputs(turn))) for turn in range(sets)]
        held = []
        for x, _ in pairs:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = function(x)
            held.append((tape, y))

        def backward(turn: int) -> Any:
            (tape, y), (x, g) = held[turn % sets], pairs[turn % sets]
            return tape.gradient(y, x, output_gradients=g)

        return self._task(TENSORS, lambda turn: function(pairs[turn % sets][0]), backward)

    def torch(self, peer: Any, sets: int) -> Task:
        torch = peer.torch
        of = torch.nn.functional.gelu
        function = peer.compiled(lambda x: of(x * A + B, approximate="tanh") + x)
        pairs = []
        for turn in range(sets):
            x, g = self.inputs(turn)
            pairs.append((peer.leaf(x), peer.put(g)))
        held = [function(x) for x, _ in pairs]
        constants = [x.detach() for x, _ in pairs]

        def backward(turn: int) -> Any:
            x, g = pairs[turn % sets]
            return torch.autograd.grad(held[turn % sets], x, g, retain_graph=True)[0]

        return self._task(peer, lambda turn: function(constants[turn % sets]), backward)

    def jax(self, peer: Any, sets: int) -> Task:
        jax = peer.jax
        pairs = [tuple(map(peer.put, self.inputs(turn))) for turn in range(sets)]

        def function(x: Any) -> Any:
            return jax.nn.gelu(x * A + B, approximate=True) + x

        forward = jax.jit(function)
        backward = jax.jit(lambda x, g: jax.vjp(function, x)[1](g)[0])
        return self._task(
            peer,
            lambda turn: forward(pairs[turn % sets][0]),
            lambda turn: backward(*pairs[turn % sets]),
        )

    def _task(self, peer: Any, forward: Any, backward: Any) -> Task:
        def check() -> None:
            which = some(self.side, CHECKED_ROWS)
            x, g = (array[which].astype(np.float64) for array in self.inputs(0))
            value, slope = gelu(x * A + B)
            require_close(peer.rows(forward(0), which), value + x, "value", TOLERANCE)
            gradient = g * (slope * A + 1)
            require_close(peer.rows(backward(0), which), gradient, "gradient", TOLERANCE)

        return Task({FORWARD: forward, BACKWARD: backward}, check)

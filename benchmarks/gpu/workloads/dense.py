"""G8: a wide dense layer, gelu(x W + b), forward and backward: matrix products and epilogues."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu.data import normal, some
from benchmarks.gpu.peers import GTAPE, JAX, TORCH, TORCH_COMPILE
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.gpu.workloads.gelu import gelu
from benchmarks.programs.program import require_close

PHASE = "forward + backward"
CHECKED, TOLERANCE = 8, 1.6e-2


class DenseLayer(Workload):
    number = "G8"
    columns = (GTAPE, TORCH, TORCH_COMPILE, JAX)

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.rows, self.inner, self.units = (max(8, n // scale) for n in (8192, 4096, 16384))

    @property
    def title(self) -> str:
        return f"linear + bias + gelu, {self.rows} x {self.inner} -> {self.units} bfloat16"

    @property
    def phases(self) -> tuple[Phase, ...]:
        flops = 3 * 2.0 * self.rows * self.inner * self.units
        return (Phase(PHASE, flops=flops, marks=(Mark(1.02, TORCH),)),)

    def inputs(self, turn: int) -> tuple[np.ndarray, np.ndarray]:
        """x, and the cotangent of the result."""
        x = normal((self.rows, self.inner), 2 * turn, "bfloat16")
        return x, normal((self.rows, self.units), 2 * turn + 1, "bfloat16")

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b."""
        w = normal((self.inner, self.units), 80, "bfloat16", self.inner**-0.5)
        return w, normal((self.units,), 81, "bfloat16")

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        activation = partial(tf.nn.gelu, approximate=True)
        layer = tf.keras.layers.Dense(self.units, activation=activation, dtype="bfloat16")
        layer.build((None, self.inner))
        for variable, value in zip((layer.kernel, layer.bias), self.weights(), strict=True):
            variable.assign(tf.constant(value))
        pairs = [tuple(map(peer.put, self.inputs(turn))) for turn in range(sets)]

        def run(turn: int) -> Any:
            x, g = pairs[turn % sets]
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x)
            return y, *tape.gradient(y, [x, layer.kernel, layer.bias], output_gradients=g)

        return self._task(peer, run)

    def torch(self, peer: Any, sets: int) -> Task:
        torch, functional = peer.torch, peer.torch.nn.functional
        w, b = self.weights()
        # torch keeps the weights of a linear layer transposed.
        weight, bias = peer.put(w).t().contiguous().requires_grad_(), peer.leaf(b)

        def function(x: Any, weight: Any, bias: Any) -> Any:
            return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")

        compiled = peer.compiled(function)
        pairs = []
        for turn in range(sets):
            x, g = self.inputs(turn)
            pairs.append((peer.leaf(x), peer.put(g)))

        def run(turn: int) -> Any:
            x, g = pairs[turn % sets]
            y = compiled(x, weight, bias)
            d_x, d_w, d_b = torch.autograd.grad(y, (x, weight, bias), g)
            return y, d_x, d_w.t(), d_b

        return self._task(peer, run)

    def jax(self, peer: Any, sets: int) -> Task:
        jax = peer.jax
        weights = list(map(peer.put, self.weights()))
        pairs = [tuple(map(peer.put, self.inputs(turn))) for turn in range(sets)]

        def both(x: Any, g: Any, w: Any, b: Any) -> Any:
            function = lambda x, w, b: jax.nn.gelu(x @ w + b, approximate=True)
            y, back = jax.vjp(function, x, w, b)
            return y, *back(g)

        compiled = jax.jit(both)
        return self._task(peer, lambda turn: compiled(*pairs[turn % sets], *weights))

    def _task(self, peer: Any, run: Any) -> Task:
        def check() -> None:
            rows, columns = some(self.rows, CHECKED), some(self.units, CHECKED)
            y, d_x, d_w, d_b = run(0)
            for what, found, expected in zip(
                ("value", "dx", "dW", "db"),
                (
                    peer.rows(y, rows),
                    peer.rows(d_x, rows),
                    peer.columns(d_w, columns),
                    peer.get(d_b)[columns],
                ),
                (*self._reference_rows(rows), *self._reference_columns(columns)),
                strict=True,
            ):
                require_close(found, expected, what, TOLERANCE)

        return Task({PHASE: run}, check)

    def _reference_rows(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of the result and of dx."""
        x, g = (array[rows].astype(np.float64) for array in self.inputs(0))
        w, b = (array.astype(np.float64) for array in self.weights())
        y, slope = gelu(x @ w + b)
        return y, (g * slope) @ w.T

    def _reference_columns(self, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Some columns of dW, and of db."""
        x, g = self.inputs(0)
        w, b = (array[..., columns].astype(np.float64) for array in self.weights())
        wide = x.astype(np.float64)
        d_z = g[:, columns].astype(np.float64) * gelu(wide @ w + b)[1]
        return wide.T @ d_z, d_z.sum(axis=0)

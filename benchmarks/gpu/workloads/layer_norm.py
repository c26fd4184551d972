"""G3: layer normalisation of long rows, both ways (Ba, Kiros & Hinton 2016, arXiv:1607.06450)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.data import normal, some
from benchmarks.gpu.peers import GTAPE, JAX, KERNELS, TORCH, TORCH_COMPILE
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.program import require_close

EPSILON = 1e-5
FORWARD, BACKWARD = "forward", "backward, with dgamma and dbeta"
CHECKED, TOLERANCE = 32, 1.6e-2
#: Rows that the reference takes at a time.
PART = 1024


class LayerNorm(Workload):
    number = "G3"
    columns = (GTAPE, KERNELS, TORCH, TORCH_COMPILE, JAX)

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.shape = max(4, 16384 // scale), max(8, 4096 // scale)
        self.gamma = 1 + normal(self.shape[1:], 100, scale=0.1)
        self.beta = normal(self.shape[1:], 101, scale=0.1)

    @property
    def title(self) -> str:
        return f"layer norm, {self.shape[0]} x {self.shape[1]} bfloat16"

    @property
    def phases(self) -> tuple[Phase, ...]:
        size, marks = 2 * self.shape[0] * self.shape[1], (Mark(0.85),)
        return (
            Phase(FORWARD, bytes=2 * size, marks=marks),
            Phase(BACKWARD, bytes=3 * size, marks=marks),
        )

    def inputs(self, turn: int) -> list[np.ndarray]:
        """x, and the cotangent of the result."""
        return [normal(self.shape, 2 * turn + i, "bfloat16") for i in (0, 1)]

    def weights(self) -> list[np.ndarray]:
        """gamma and beta."""
        kind = normal((1,), 0, "bfloat16").dtype
        return [self.gamma.astype(kind), self.beta.astype(kind)]

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        layer = tf.keras.layers.LayerNormalization(epsilon=EPSILON, dtype="bfloat16")
        layer.build(self.shape)
        for variable, value in zip((layer.gamma, layer.beta), self.weights(), strict=True):
            variable.assign(tf.constant(value))
        pairs = [[tf.constant(a) for a in self.inputs(turn)] for turn in range(sets)]
        held = []
        for x, _ in pairs:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = layer(x)
            held.append((tape, y))

        def backward(turn: int) -> Any:
            (tape, y), (x, g) = held[turn % sets], pairs[turn % sets]
            return tape.gradient(y, [x, layer.gamma, layer.beta], output_gradients=g)

        return self._task(peer, lambda turn: layer(pairs[turn % sets][0]), backward)

    def kernels(self, peer: Any, sets: int) -> Task:
        from gtape.devices.cuda.kernels.normalization import layer_norm, layer_norm_grad

        gpu = peer.gpu
        gamma, beta = map(peer.put, self.weights())
        pairs = [list(map(peer.put, self.inputs(turn))) for turn in range(sets)]
        kept = [layer_norm(gpu, x, gamma, beta, (1,), EPSILON)[1:] for x, _ in pairs]

        def forward(turn: int) -> Any:
            return layer_norm(gpu, pairs[turn % sets][0], gamma, beta, (1,), EPSILON)[0]

        def backward(turn: int) -> Any:
            x, g = pairs[turn % sets]
            return layer_norm_grad(gpu, g, x, gamma, *kept[turn % sets], (1,), beta.shape)

        return self._task(peer, forward, backward)

    def torch(self, peer: Any, sets: int) -> Task:
        torch, width = peer.torch, self.shape[1:]
        of = torch.nn.functional.layer_norm
        gamma, beta = map(peer.leaf, self.weights())
        function = peer.compiled(lambda x, gamma, beta: of(x, width, gamma, beta, EPSILON))
        pairs = []
        for turn in range(sets):
            x, g = self.inputs(turn)
            pairs.append((peer.leaf(x), peer.put(g)))
        held = [function(x, gamma, beta) for x, _ in pairs]
        constants = [x.detach() for x, _ in pairs]
        fixed = gamma.detach(), beta.detach()

        def backward(turn: int) -> Any:
            x, g = pairs[turn % sets]
            y = held[turn % sets]
            return torch.autograd.grad(y, (x, gamma, beta), g, retain_graph=True)

        return self._task(peer, lambda turn: function(constants[turn % sets], *fixed), backward)

    def jax(self, peer: Any, sets: int) -> Task:
        jax, jnp = peer.jax, peer.jax.numpy
        weights = list(map(peer.put, self.weights()))
        pairs = [list(map(peer.put, self.inputs(turn))) for turn in range(sets)]

        def function(x: Any, gamma: Any, beta: Any) -> Any:
            wide = x.astype(jnp.float32)
            centred = wide - wide.mean(axis=-1, keepdims=True)
            factor = jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
            return (centred * factor * gamma + beta).astype(x.dtype)

        run = jax.jit(function)
        pull_back = jax.jit(lambda g, *args: jax.vjp(function, *args)[1](g))
        return self._task(
            peer,
            lambda turn: run(pairs[turn % sets][0], *weights),
            lambda turn: pull_back(pairs[turn % sets][1], pairs[turn % sets][0], *weights),
        )

    def _task(self, peer: Any, forward: Any, backward: Any) -> Task:
        def check() -> None:
            x, g = self.inputs(0)
            rows, columns = some(self.shape[0], CHECKED), some(self.shape[1], CHECKED)
            y, d_x = self._reference_rows(x[rows], g[rows])
            require_close(peer.rows(forward(0), rows), y, "value", TOLERANCE)
            found = backward(0)
            require_close(peer.rows(found[0], rows), d_x, "dx", TOLERANCE)
            sums = self._reference_sums(x, g, columns)
            for what, got, expected in zip(("dgamma", "dbeta"), found[1:], sums, strict=True):
                require_close(peer.get(got)[columns], expected, what, TOLERANCE)

        return Task({FORWARD: forward, BACKWARD: backward}, check)

    def _reference_rows(self, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The results and dx of some rows."""
        gamma, beta = (w.astype(np.float64) for w in self.weights())
        n, factor = normalised(x)
        a = g.astype(np.float64) * gamma
        means = a.mean(axis=1, keepdims=True), (a * n).mean(axis=1, keepdims=True)
        return n * gamma + beta, factor * (a - means[0] - n * means[1])

    def _reference_sums(
        self, x: np.ndarray, g: np.ndarray, columns: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """dgamma and dbeta of some columns, over all rows."""
        d_gamma, d_beta = np.zeros(len(columns)), np.zeros(len(columns))
        for start in range(0, len(x), PART):
            part = g[start : start + PART, columns].astype(np.float64)
            d_gamma += (part * normalised(x[start : start + PART])[0][:, columns]).sum(axis=0)
            d_beta += part.sum(axis=0)
        return d_gamma, d_beta


def normalised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x - mean) / sqrt(variance + epsilon) of every row, and the factor, in float64."""
    wide = x.astype(np.float64)
    wide -= wide.mean(axis=1, keepdims=True)
    factor = 1 / np.sqrt(np.einsum("ij,ij->i", wide, wide)[:, None] / x.shape[1] + EPSILON)
    return wide * factor, factor

"""G4: softmax cross entropy over a vocabulary: the mean loss, and its gradient by the logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.data import normal, some
from benchmarks.gpu.peers import GTAPE, JAX, KERNELS, TORCH, TORCH_COMPILE
from benchmarks.gpu.workload import Mark, Phase, Task, Workload
from benchmarks.programs.program import require_close

PHASE = "loss + gradient"
CHECKED_ROWS, TOLERANCE = 16, 1.6e-2
#: Rows that the reference takes at a time.
PART = 512


class CrossEntropy(Workload):
    number = "G4"
    columns = (GTAPE, KERNELS, TORCH, TORCH_COMPILE, JAX)
    #: One set is many times what any cache holds.
    sets = 1

    def __init__(self, scale: int = 1) -> None:
        super().__init__(scale)
        self.shape = max(4, 8192 // scale), max(16, 50304 // scale)

    @property
    def title(self) -> str:
        return f"softmax cross entropy, {self.shape[0]} x {self.shape[1]} bfloat16"

    @property
    def phases(self) -> tuple[Phase, ...]:
        once = 2 * self.shape[0] * self.shape[1]
        return (Phase(PHASE, bytes=2 * once, marks=(Mark(round(1 / 1.15, 3)),)),)

    def logits(self) -> np.ndarray:
        return normal(self.shape, 4, "bfloat16")

    def labels(self) -> np.ndarray:
        return np.random.default_rng(5).integers(0, self.shape[1], self.shape[0]).astype(np.int32)

    def gtape(self, peer: Any, sets: int) -> Task:
        import gtape as tf

        logits, labels = peer.put(self.logits()), peer.put(self.labels())

        def run(turn: int) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(logits)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                loss = tf.reduce_mean(losses)
            return loss, tape.gradient(loss, logits)

        return self._task(peer, run)

    def kernels(self, peer: Any, sets: int) -> Task:
        """Losses and gradient in one launch; the mean is not taken."""
        from gtape.devices.cuda.kernels.softmax import cross_entropy_and_gradient

        logits, labels = peer.put(self.logits()), peer.put(self.labels())
        each = 1 / self.shape[0]
        return self._task(
            peer, lambda turn: cross_entropy_and_gradient(peer.gpu, logits, labels, None, each)
        )

    def torch(self, peer: Any, sets: int) -> Task:
        torch = peer.torch
        logits, labels = peer.leaf(self.logits()), peer.put(self.labels().astype(np.int64))
        function = peer.compiled(torch.nn.functional.cross_entropy)

        def run(turn: int) -> Any:
            loss = function(logits, labels)
            return loss.detach(), torch.autograd.grad(loss, logits)[0]

        return self._task(peer, run)

    def jax(self, peer: Any, sets: int) -> Task:
        jax, jnp = peer.jax, peer.jax.numpy
        logits, labels = peer.put(self.logits()), peer.put(self.labels())

        def loss_of(logits: Any) -> Any:
            logs = jax.nn.log_softmax(logits.astype(jnp.float32))
            return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean()

        both = jax.jit(jax.value_and_grad(loss_of))
        return self._task(peer, lambda turn: both(logits))

    def _task(self, peer: Any, run: Any) -> Task:
        def check() -> None:
            logits, labels = self.logits(), self.labels()
            which = some(self.shape[0], CHECKED_ROWS)
            found, gradient = run(0)
            loss = np.mean(peer.get(found))
            require_close(loss, self._reference_loss(logits, labels), "mean loss", TOLERANCE)
            expected = self._reference_gradient(logits[which], labels[which])
            require_close(peer.rows(gradient, which), expected, "gradient", TOLERANCE)

        return Task({PHASE: run}, check)

    def _reference_loss(self, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The mean loss; exponentials in float32, which is plenty, and sums in float64."""
        total = 0.0
        for start in range(0, len(logits), PART):
            x, picked = logits[start : start + PART], labels[start : start + PART]
            sums = np.exp(x.astype(np.float32)).sum(axis=1, dtype=np.float64)
            own = x[np.arange(len(x)), picked].astype(np.float64)
            total += float((np.log(sums) - own).sum())
        return np.asarray(total / len(logits))

    def _reference_gradient(self, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The gradient of the mean loss by some rows of the logits."""
        made = np.exp(logits.astype(np.float64))
        made /= made.sum(axis=1, keepdims=True)
        made[np.arange(len(made)), labels] -= 1
        return made / self.shape[0]

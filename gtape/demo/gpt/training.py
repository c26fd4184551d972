"""How the GPT is trained: what a run is to do and has seen, which is part of its checkpoints, the
optimizer, and the loss on held-out text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import gtape as tf
from gtape.demo.gpt.data import windows
from gtape.demo.gpt.model import GPT, Size
from gtape.demo.step import mean_loss
from gtape.train.experimental import PythonState

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor

_PEAK, _FLOOR = 2e-3, 0.1
_WARMUP = 100


def make_optimizer(model: GPT, steps: int) -> Any:
    """AdamW with linear warm-up and half a cosine; gains and biases are not decayed."""
    warmup = min(_WARMUP, steps // 10 + 1)
    rate = tf.keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=max(1, steps - warmup), alpha=_FLOOR, warmup_target=_PEAK,
        warmup_steps=warmup)
    optimizer = tf.keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.95,
                                          global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(
        var_list=[v for v in model.trainable_variables if len(v.shape) < 2])
    return optimizer


def make_evaluation(model: GPT, held_out: np.ndarray, *, batches: int, size: int, eager: bool,
                    ) -> Callable[[], float]:
    """A function that gives the mean loss on windows spread evenly over the held-out text."""
    context = model.size.context
    starts = np.linspace(0, len(held_out) - context - 1, batches * size).astype(np.int64)
    inputs, targets = windows(held_out, starts, context)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return mean_loss(model, inputs, targets)

    compiled = loss_of if eager else tf.function(loss_of)

    def evaluate() -> float:
        parts = [slice(i * size, (i + 1) * size) for i in range(batches)]
        return float(np.mean([float(compiled(tf.constant(inputs[p]), tf.constant(targets[p])))
                              for p in parts]))

    return evaluate


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that the losses depend on, besides the text, whose fingerprint is noted."""

    steps: int = 2000
    seed: int = 0
    size: Size = field(default_factory=Size)
    batch: int = 16
    #: Of the held-out text, for each measurement.
    held_out_batches: int = 16
    sample: int = 600
    fingerprint: int = 0

    @property
    def every(self) -> int:
        """Steps between two measurements, at each of which a checkpoint is saved."""
        return max(1, self.steps // 10)


@dataclass
class TrainingRecord(PythonState):
    """The plan, the loss of every step, and held-out losses by the number of steps before."""

    plan: TrainingPlan = field(default_factory=TrainingPlan)
    losses: list[float] = field(default_factory=list)
    held_out: dict[int, float] = field(default_factory=dict)

    def serialize(self) -> str:
        return json.dumps(asdict(self))

    def deserialize(self, string_value: str) -> None:
        found = json.loads(string_value)
        plan = found["plan"]
        self.plan = TrainingPlan(**{**plan, "size": Size(**plan["size"])})
        self.losses = [float(loss) for loss in found["losses"]]
        self.held_out = {int(step): float(loss) for step, loss in found["held_out"].items()}

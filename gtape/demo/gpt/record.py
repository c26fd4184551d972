"""What a run of the GPT is to do, and what it has seen: both are part of its checkpoints."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from gtape.demo.gpt.model import Size
from gtape.train.experimental import PythonState


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

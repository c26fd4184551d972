"""What the tape of one training step keeps for the way back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import gtape as tf
from gtape.demo.data import Samples
from gtape.demo.model import DigitsNet
from gtape.demo.training import batch_loss


class HeldBytes(NamedTuple):
    """One operation on the tape, the line that called it, and the bytes kept for its gradient."""

    op: str
    place: str
    source: str
    bytes: int


def bill(model: DigitsNet, batch: Samples) -> list[HeldBytes]:
    """The rows of `tape.memory()` for one step, in the order of recording."""
    with tf.GradientTape() as tape:
        batch_loss(model, batch)
    return [HeldBytes(row.op, f"{Path(row.site.file).name}:{row.site.line}", row.site.text,
                      row.bytes)
            for row in tape.memory()]

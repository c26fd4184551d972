"""gtape.train: checkpoints of models, optimizers and random streams.

Files are safetensors, written whole or not at all, and verified when they are read.
"""

from __future__ import annotations

from gtape.train import experimental
from gtape.train.checkpoint import Checkpoint
from gtape.train.listing import latest_checkpoint
from gtape.train.manager import CheckpointManager
from gtape.train.random_state import RandomStreams
from gtape.train.status import RestoreStatus

__all__ = ["Checkpoint", "CheckpointManager", "RandomStreams", "RestoreStatus", "experimental",
           "latest_checkpoint"]


def __getattr__(name: str) -> object:
    raise AttributeError(f"gtape.train has no '{name}'; it has {', '.join(__all__)}. Optimizers "
                         f"are in gtape.optimizers")

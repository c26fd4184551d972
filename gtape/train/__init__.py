"""gtape.train: checkpoints of models, optimizers and random streams; Examples to learn from.

Files of checkpoints are safetensors, written whole or not at all, and verified when they are read.
"""

from __future__ import annotations

from gtape.files.examples import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from gtape.train import experimental
from gtape.train.checkpoint import Checkpoint
from gtape.train.manager import CheckpointManager, latest_checkpoint
from gtape.train.python_states import RandomStreams
from gtape.train.restoring import RestoreStatus

__all__ = ["BytesList", "Checkpoint", "CheckpointManager", "Example", "Feature", "FeatureList",
           "FeatureLists", "Features", "FloatList", "Int64List", "RandomStreams", "RestoreStatus",
           "SequenceExample", "experimental", "latest_checkpoint"]


def __getattr__(name: str) -> object:
    raise AttributeError(f"gtape.train has no '{name}'; it has {', '.join(__all__)}. Optimizers "
                         f"are in gtape.optimizers")

"""gtape.train: checkpoints of models, optimizers and random streams; Examples to learn from.

Files of checkpoints are safetensors, written whole or not at all, and verified when they are read.
"""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.files.messages": """
        BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List
        SequenceExample""",
    "gtape.train": "experimental",
    "gtape.train.checkpoint": "Checkpoint",
    "gtape.train.manager": "CheckpointManager latest_checkpoint",
    "gtape.train.python_states": "RandomStreams",
    "gtape.train.restoring": "RestoreStatus",
}

#: TensorFlow 1 had them here.
_ABSENT = {f"{name}Optimizer": "optimizers are in gtape.optimizers" for name in (
    "", "Adadelta", "Adagrad", "Adam", "Ftrl", "GradientDescent", "Momentum", "RMSProp")}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE, _ABSENT)

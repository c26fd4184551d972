"""The model's variables in a checkpoint."""

from __future__ import annotations

from pathlib import Path

import gtape as tf
from gtape.demo.errors import DemoError
from gtape.demo.model import DigitsNet


def save(model: DigitsNet, file: Path) -> None:
    """Write every variable under its name."""
    tf.train.Checkpoint(model).write(file)


def load(file: Path) -> DigitsNet:
    """A new model with the variables of a checkpoint.

    Raises:
        DemoError: the file is no checkpoint of this model: other names, shapes or dtypes.
    """
    model = DigitsNet(seed=0)
    try:
        tf.train.Checkpoint(model).read(file).expect_partial().assert_consumed()
    except (tf.errors.OpError, AssertionError, OSError) as error:
        raise DemoError(f"cannot load the checkpoint {file}: {error}") from error
    return model

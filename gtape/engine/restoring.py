"""Weights read from a file: all of them, or the model is as it was."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import gtape as tf


def amend_saving(module: ModuleType) -> None:
    """Let `load_weights` give the model its values back where it fails."""
    plain = module.load_weights

    @functools.wraps(plain)
    def load_weights(model: Any, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> Any:
        variables = [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]
        before = [tf.convert_to_tensor(variable) for variable in variables]
        try:
            return plain(model, filepath, skip_mismatch, **kwargs)
        except BaseException:
            for variable, value in zip(variables, before):
                variable.assign(value)
            raise

    module.load_weights = load_weights  # type: ignore[attr-defined]

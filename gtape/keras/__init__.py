"""Layers, losses, optimizers and metrics in the manner of Keras 3, on gtape's tape.

Every submodule is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = ("activations", "backend", "callbacks", "config", "constraints", "initializers",
               "layers", "losses", "metrics", "models", "optimizers", "regularizers",
               "utils")
_NAMES = {
    "Sequential": "models", "Model": "models", "Layer": "layers", "Input": "layers",
    "Loss": "losses", "Metric": "metrics", "Optimizer": "optimizers", "Variable": "variables",
    "Initializer": "initializers", "Regularizer": "regularizers"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"gtape.keras.{name}")
    if name not in _NAMES:
        raise AttributeError(f"gtape.keras has no '{name}'; it has "
                             f"{', '.join((*_SUBMODULES, *_NAMES))}")
    return getattr(importlib.import_module(f"gtape.keras.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted((*_SUBMODULES, *_NAMES))

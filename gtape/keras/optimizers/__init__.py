"""Optimizers: rules that turn gradients into new values of variables."""

from __future__ import annotations

import importlib
from typing import Any

from gtape.core.text import shown

_WHERE = {
    "optimizer": "Optimizer",
    "gradient_descent": "SGD Lion",
    "adam": "Adam AdamW Adamax Nadam",
    "adaptive": "Adadelta Adagrad RMSprop",
    "follow_the_leader": "Ftrl",
    "layerwise": "Lamb Adafactor Muon",
    "schedule_free": "ScheduleFreeAdamW",
    "combined": "LossScaleOptimizer MultiOptimizer OptimizerMap",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "schedules":
        return importlib.import_module("gtape.keras.optimizers.schedules")
    from gtape.keras.lookup import attribute

    return attribute(__name__, _MODULE_OF, globals(), name)


def __dir__() -> list[str]:
    return sorted((*_MODULE_OF, "schedules", "get"))


def get(identifier: Any) -> Any:
    """The optimizer of a name such as 'adam'; optimizers stay.

    Raises:
        ValueError: an unknown name, or something else.
    """
    from gtape.keras.lookup import found
    from gtape.keras.optimizers.optimizer import Optimizer

    if isinstance(identifier, Optimizer):
        return identifier
    if not isinstance(identifier, str):
        raise ValueError(f"an optimizer must be a name or an Optimizer; got {shown(identifier)}")
    names = {name.lower(): name for name in _MODULE_OF}
    return __getattr__(found("optimizer", names, identifier.lower()))()

"""How Keras tells a RaggedTensor: by its class, and not by the name of TensorFlow's module."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import gtape as tf


def _is_ragged_tensor(x: Any) -> bool:
    return isinstance(x, tf.RaggedTensor)


def amend_utils(module: ModuleType) -> None:
    """Let the module's `is_ragged_tensor` know gtape's class."""
    module.is_ragged_tensor = _is_ragged_tensor  # type: ignore[attr-defined]

"""gtape's datasets are those that Keras takes for TensorFlow's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gtape.data.dataset import Dataset


def amend_adapters(module: ModuleType) -> None:
    """Keras looks at the names of classes and modules, since it may not import TensorFlow."""
    plain = module.is_tf_dataset

    def is_tf_dataset(x: Any) -> bool:
        return isinstance(x, Dataset) or plain(x)

    module.is_tf_dataset = is_tf_dataset  # type: ignore[attr-defined]

"""gtape's datasets and tensors are those that Keras takes for TensorFlow's.

Keras looks at the names of classes and modules, since it may not import TensorFlow.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gtape.core.composite import CompositeTensor
from gtape.core.tensor import Tensor
from gtape.data.dataset import Dataset


def amend_adapters(module: ModuleType) -> None:
    """A dataset of gtape is one of TensorFlow."""
    plain = module.is_tf_dataset

    def is_tf_dataset(x: Any) -> bool:
        return isinstance(x, Dataset) or plain(x)

    module.is_tf_dataset = is_tf_dataset  # type: ignore[attr-defined]


def amend_utils(module: ModuleType) -> None:
    """So are its tensors, and those made of several."""
    def composite(value: Any, name: str) -> bool:
        return isinstance(value, CompositeTensor) and type(value).__name__ == name

    def is_ragged(value: Any) -> bool:
        return composite(value, "RaggedTensor")

    def is_sparse(value: Any) -> bool:
        return composite(value, "SparseTensor")

    def is_tensor(value: Any) -> bool:
        return isinstance(value, Tensor) or is_ragged(value) or is_sparse(value)

    vars(module).update(is_tensorflow_ragged=is_ragged, is_tensorflow_sparse=is_sparse,
                        is_tensorflow_tensor=is_tensor)

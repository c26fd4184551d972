"""gtape's datasets and tensors are those that Keras takes for TensorFlow's.

Keras looks at the names of classes and modules, since it may not import TensorFlow.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import gtape as tf
from gtape.data.dataset import Dataset

#: By the names of Keras' questions.
_CLASSES: dict[str, Any] = {
    "is_tf_dataset": Dataset,
    "is_tensorflow_tensor": (tf.Tensor, tf.RaggedTensor, tf.SparseTensor),
    "is_tensorflow_ragged": tf.RaggedTensor,
    "is_tensorflow_sparse": tf.SparseTensor,
    "is_ragged_tensor": tf.RaggedTensor,
}


def amend(module: ModuleType) -> None:
    """Let the module's questions hold for instances of gtape's classes too."""
    for name in _CLASSES.keys() & vars(module).keys():
        plain, classes = getattr(module, name), _CLASSES[name]
        setattr(module, name, lambda value, plain=plain, classes=classes: (
            isinstance(value, classes) or plain(value)))

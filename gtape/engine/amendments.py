"""What gtape changes in Keras' modules, each once it has run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

#: By the name of Keras' module: the functions that amend it, and their files.
_AMENDMENTS = {
    "keras.src.backend.common.dtypes": ["layers.amend_dtypes"],
    "keras.src.backend.tensorflow.core": ["layers.amend_specs", "layers.amend_core"],
    "keras.src.backend.tensorflow.rnn": ["fusing.amend_rnn"],
    "keras.src.backend.tensorflow.trainer": ["training.amend_trainer"],
    "keras.src.export": ["data.amend_export"],
    "keras.src.export.saved_model_export_archive": ["data.amend_archive"],
    "keras.src.layers.core.dense": ["fusing.amend_dense"],
    "keras.src.layers.layer": ["layers.amend_layer"],
    "keras.src.layers.normalization.batch_normalization": ["fusing.amend_batch_normalization"],
    "keras.src.ops.nn": ["fusing.amend_nn"],
    "keras.src.ops.operation": ["training.amend_operation"],
    "keras.src.saving.saving_api": ["data.amend_saving"],
    "keras.src.trainers.data_adapters": ["data.amend_questions"],
    "keras.src.trainers.data_adapters.data_adapter_utils": ["data.amend_questions"],
    "keras.src.utils.dataset_utils": ["data.amend_questions"],
    "keras.src.optimizers.base_optimizer": ["training.amend_optimizer"],
    "keras.src.optimizers.loss_scale_optimizer": ["training.amend_optimizer"],
    "keras.src.optimizers.multi_optimizer": ["training.amend_optimizer"],
    "keras.src.utils.python_utils": ["training.amend_logs"],
    "keras.src.utils.tf_utils": ["data.amend_questions"],
    "keras.src.layers.preprocessing.index_lookup": ["data.amend_index_lookup"],
    "keras.src.layers.preprocessing.text_vectorization": ["data.amend_text_vectorization"],
}


def apply(module: ModuleType) -> None:
    """Amend `module`, if gtape has something to say in it."""
    for name in _AMENDMENTS.get(module.__name__, ()):
        file, function = name.split(".")
        # Late: only for what the program loads of Keras.
        getattr(import_module(f"gtape.engine.{file}"), function)(module)


def instead(owner: object, name: str) -> Callable[[Callable[..., Any]], None]:
    """Decorator: the function stands for what `owner` has by this name, signature included."""
    def put(function: Any) -> None:
        # Keras reads signatures: whether `call` takes `training` and `mask`.
        plain = getattr(owner, name)
        functools.update_wrapper(function, plain)
        function.__signature__ = inspect.signature(plain)
        setattr(owner, name, function)

    return put

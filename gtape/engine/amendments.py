"""What gtape changes in Keras' modules, each once it has run."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

#: By the name of Keras' module: the module and the function that amend it.
_AMENDMENTS = {
    "keras.src.backend.tensorflow.core": ("symbolic", "amend_core"),
    "keras.src.backend.tensorflow.rnn": ("recurrent", "amend_rnn"),
    "keras.src.backend.tensorflow.trainer": ("training", "amend_trainer"),
    "keras.src.layers.preprocessing.text_vectorization": ("text", "amend_text_vectorization"),
    "keras.src.ops.nn": ("normalizing", "amend_nn"),
    "keras.src.ops.operation": ("training", "amend_operation"),
    "keras.src.trainers.data_adapters": ("datasets", "amend_adapters"),
    "keras.src.trainers.data_adapters.data_adapter_utils": ("datasets", "amend_utils"),
    "keras.src.utils.tf_utils": ("composites", "amend_utils"),
    "keras.src.utils.dataset_utils": ("datasets", "amend_adapters"),
    "keras.src.optimizers.base_optimizer": ("optimizing", "amend_optimizer"),
    "keras.src.optimizers.loss_scale_optimizer": ("optimizing", "amend_optimizer"),
    "keras.src.optimizers.multi_optimizer": ("optimizing", "amend_optimizer"),
}


def apply(module: ModuleType) -> None:
    """Amend `module`, if gtape has something to say in it."""
    found = _AMENDMENTS.get(module.__name__)
    if found is not None:
        getattr(import_module(f"gtape.engine.{found[0]}"), found[1])(module)

"""What goes into models and comes out: datasets, words, files.

gtape's datasets and tensors are those that Keras takes for TensorFlow's: it looks at the names of
classes and modules, since it may not import TensorFlow. Tables of words stay on the host, whatever
device is in use. Weights are read as a whole or not at all, and exports are refused.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

import numpy as np

import gtape as tf
from gtape.core import nest
from gtape.core.device import CPU, current_device, on
from gtape.core.errors import UnimplementedError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.data.dataset import Dataset
from gtape.engine.amendments import instead
from gtape.ops.shape.identity import moved
from gtape.trace.host_steps import step
from gtape.trace.symbolic_tensor import SymbolicTensor
from gtape.train.restoring import values_kept_on_failure

#: By the names of Keras' questions.
_CLASSES: dict[str, Any] = {
    "is_tf_dataset": Dataset,
    "is_tensorflow_tensor": (tf.Tensor, tf.RaggedTensor, tf.SparseTensor),
    "is_tensorflow_ragged": tf.RaggedTensor,
    "is_tensorflow_sparse": tf.SparseTensor,
    "is_ragged_tensor": tf.RaggedTensor,
}


def amend_questions(module: ModuleType) -> None:
    """Let the module's questions hold for instances of gtape's classes too."""
    for name in _CLASSES.keys() & vars(module).keys():
        plain, classes = getattr(module, name), _CLASSES[name]
        # As defaults: both change as the loop goes on.
        setattr(module, name, lambda value, plain=plain, classes=classes: (
            isinstance(value, classes) or plain(value)))


def amend_index_lookup(module: ModuleType) -> None:
    """Keep the tables and what is computed with them on the host; results go where inputs were, or
    where new tensors go."""
    layer, on_host = module.IndexLookup, on(CPU)
    for name in ("__init__", "set_vocabulary", "update_state", "finalize_state",
                 "load_own_variables"):
        instead(layer, name)(on_host(getattr(layer, name)))
    plain = on_host(layer.call)

    @instead(layer, "call")
    def call(self: object, inputs: Any) -> Any:
        tensors = nest.flatten(inputs, expand_composites=True)
        # Words lie on the host, whatever the device in use: they tell no home.
        homes = [t._t.device for t in tensors if isinstance(t, Tensor) and t.dtype != tf.string]
        home = homes[0] if homes and not homes[0].is_host else current_device()
        if home.is_host:
            return plain(self, inputs)
        return moved(plain(self, moved(inputs, CPU)), home)


def amend_text_vectorization(module: ModuleType) -> None:
    """Let the layer be a step of traced functions: words have no shape before they are split."""
    layer = module.TextVectorization
    plain = layer.call

    @instead(layer, "call")
    def call(self: Any, inputs: Any) -> Any:
        lookup = self._lookup_layer
        if not isinstance(inputs, SymbolicTensor) or not inputs.ndim or self._ragged or (
                lookup.sparse):
            return plain(self, inputs)
        shape = self.compute_output_shape(inputs.spec.shape)
        if None in shape:  # a step must know what comes out before it runs
            return plain(self, inputs)

        def run(array: np.ndarray) -> list[np.ndarray]:
            return [plain(self, tf.constant(array)).numpy()]

        dtype = tf.keras.config.floatx() if lookup.output_mode == "tf_idf" else lookup._value_dtype
        return step(self.name, run, [inputs], [Spec(tuple(shape), tf.as_dtype(dtype))])[0]


_EXPORTS = ("export_litert", "export_onnx", "export_openvino", "export_saved_model")


def amend_saving(module: ModuleType) -> None:
    """Let `load_weights` give the model its values back where it fails."""
    plain = module.load_weights

    @instead(module, "load_weights")
    def load_weights(model: Any, filepath: object, skip_mismatch: bool = False, **kwargs: object,
                     ) -> Any:
        variables = [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]
        with values_kept_on_failure(variables):
            return plain(model, filepath, skip_mismatch, **kwargs)


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise UnimplementedError(
        "Keras exports SavedModel, ONNX, OpenVINO and LiteRT with the libraries of TensorFlow, JAX "
        "or torch, which read their own graphs; gtape writes none of these. Write "
        "model.save('model.keras'), which holds the same bits for every engine, and in a process "
        "of its own, with KERAS_BACKEND=tensorflow and TensorFlow installed, "
        "keras.models.load_model('model.keras').export(...)")


def amend_export(module: ModuleType) -> None:
    """Let every format be refused before anything is traced or written."""
    vars(module).update(dict.fromkeys(_EXPORTS, _refuse))


def amend_archive(module: ModuleType) -> None:
    """`keras.export.ExportArchive` too."""
    module.SavedModelExportArchive.__init__ = _refuse

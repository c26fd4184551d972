"""Layers of words: tables on the host, whatever device is in use, and traced TextVectorization."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import gtape as tf
from gtape.core import nest
from gtape.core.device import CPU, current_device, on
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.engine.amendments import instead
from gtape.ops.shape.identity import moved
from gtape.trace.host_steps import step
from gtape.trace.symbolic_tensor import SymbolicTensor


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
        if None in shape:
            return plain(self, inputs)

        def run(array: np.ndarray) -> list[np.ndarray]:
            return [plain(self, tf.constant(array)).numpy()]

        dtype = tf.keras.config.floatx() if lookup.output_mode == "tf_idf" else lookup._value_dtype
        return step(self.name, run, [inputs], [Spec(tuple(shape), tf.as_dtype(dtype))])[0]

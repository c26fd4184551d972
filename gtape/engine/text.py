"""TextVectorization in a traced function: one step, where the shape of its result is known."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

import gtape as tf
from gtape.core.lengths import Length
from gtape.core.spec import Spec
from gtape.core.symbols import SymbolicTensor
from gtape.kinds.steps import step


def _known_spec(layer: Any, inputs: Any) -> Spec | None:
    """The spec of the layer's result; None where it depends on the strings, or is not dense."""
    if layer._ragged or layer._lookup_layer.sparse or not inputs.ndim:
        return None
    shape = layer.compute_output_shape(inputs.spec.shape)
    if not all(isinstance(n, (int, Length)) for n in shape):
        return None
    lookup = layer._lookup_layer
    modes = {"int": tf.int64, "tf_idf": tf.as_dtype(tf.keras.config.floatx())}
    return Spec(tuple(shape), modes.get(lookup.output_mode, tf.as_dtype(lookup._value_dtype)))


def amend_text_vectorization(module: ModuleType) -> None:
    """Let the layer be a step of traced functions: words have no shape before they are split."""
    layer = module.TextVectorization
    plain = layer.call

    @functools.wraps(plain)
    def call(self: Any, inputs: Any) -> Any:
        spec = _known_spec(self, inputs) if isinstance(inputs, SymbolicTensor) else None
        if spec is None:
            return plain(self, inputs)

        def run(array: np.ndarray) -> list[np.ndarray]:
            return [plain(self, tf.constant(array)).numpy()]

        return step(self.name, run, [inputs], [spec])[0]

    layer.call = call

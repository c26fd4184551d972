"""Layers: functions with weights. Each is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "layer": "Layer",
    "dense": "Dense",
    "embedding": "Embedding",
    "functions": "Activation Lambda Rescaling Softmax ReLU LeakyReLU PReLU ELU",
    "input_layer": "Input InputLayer",
    "shaping": "Flatten Permute RepeatVector Reshape UpSampling2D ZeroPadding2D",
    "noise": "Dropout GaussianNoise SpatialDropout1D SpatialDropout2D",
    "convolution": "Conv1D Conv2D",
    "transposed_convolution": "Conv1DTranspose Conv2DTranspose",
    "depthwise": "DepthwiseConv2D SeparableConv2D",
    "pooling": """AveragePooling1D AveragePooling2D MaxPooling1D MaxPooling2D
        GlobalAveragePooling1D GlobalAveragePooling2D GlobalMaxPooling1D GlobalMaxPooling2D""",
    "batch_normalization": "BatchNormalization",
    "normalization": """GroupNormalization LayerNormalization Normalization RMSNormalization
        UnitNormalization""",
    "merging": "Add Average Concatenate Dot Maximum Minimum Multiply Subtract",
    "recurrent": "RNN SimpleRNN LSTM GRU",
    "recurrent_cells": "SimpleRNNCell LSTMCell GRUCell",
    "wrappers": "Bidirectional TimeDistributed",
    "attention": "MultiHeadAttention",
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}
_MODULE_OF |= {"MaxPool1D": "pooling", "MaxPool2D": "pooling", "AvgPool1D": "pooling",
               "AvgPool2D": "pooling", "Convolution2D": "convolution"}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        import difflib

        near = difflib.get_close_matches(name, _MODULE_OF, 3)
        raise AttributeError(f"gtape.keras.layers has no '{name}'"
                             + (f"; did you mean {', '.join(near)}?" if near else ""))
    found = getattr(importlib.import_module(f"gtape.keras.layers.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)

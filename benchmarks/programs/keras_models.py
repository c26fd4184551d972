"""Keras models and data of the benchmarks of engines: the same Python code on every engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

#: The backend of Keras by the column of the table; gtape's is gtape itself.
BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}
WORDS = 1000


def keras_of(column: str) -> ModuleType:
    """Keras on the engine of this column; one in a process."""
    if column == "gtape":
        import gtape

        return gtape.keras
    os.environ["KERAS_BACKEND"] = BACKENDS[column]
    import keras

    return keras


@dataclass(frozen=True)
class Problem:
    """A model and what it learns from: `build(keras)`, and the inputs and labels of n samples."""

    build: Callable[[Any], Any]
    data: Callable[[int], tuple[np.ndarray, np.ndarray]]
    loss: Callable[[Any], Any]
    metrics: tuple[str, ...] = ()


def _classes(n: int, shape: tuple[int, ...], classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((int(np.prod(shape)), classes))
    x = rng.standard_normal((n, *shape)).astype(np.float32)
    # Brighter images are of higher classes, so that a net of convolutions learns it too.
    level = np.floor(classes * rng.random(n))
    x += (level / classes).astype(np.float32).reshape(-1, *(1 for _ in shape))
    return x, np.argmax(x.reshape(n, -1) @ weights, 1).astype(np.int32) if len(shape) == 1 else (
        level.astype(np.int32))


def _words(length: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    def data(n: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        words = rng.integers(0, WORDS, (n, length)).astype(np.int32)
        return words, (words[:, -1] % 10).astype(np.int32)

    return data


def _numbers(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((n, 10)).astype(np.float32)
    return x, np.sin(x.sum(1, keepdims=True))


def dense(*sizes: int) -> Callable[[Any], Any]:
    def build(keras: Any) -> Any:
        layers = [keras.layers.Dense(n, activation="relu") for n in sizes[1:-1]]
        return keras.Sequential([keras.Input(sizes[:1]), *layers, keras.layers.Dense(sizes[-1])])

    return build


def convolutions(side: int) -> Callable[[Any], Any]:
    def build(keras: Any) -> Any:
        layers = keras.layers
        return keras.Sequential([
            keras.Input((side, side, 1)), layers.Conv2D(16, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"), layers.GlobalAveragePooling2D(),
            layers.Dense(10)])

    return build


def recurrent(length: int, units: int) -> Callable[[Any], Any]:
    def build(keras: Any) -> Any:
        layers = keras.layers
        return keras.Sequential([
            keras.Input((length,), dtype="int32"), layers.Embedding(WORDS, 32),
            layers.LSTM(units), layers.Dense(10)])

    return build


def transformer(length: int, width: int) -> Callable[[Any], Any]:
    def build(keras: Any) -> Any:
        layers = keras.layers
        tokens = keras.Input((length,), dtype="int32")
        x = layers.Embedding(WORDS, width)(tokens)
        for _ in range(2):
            h = layers.LayerNormalization()(x)
            x = x + layers.MultiHeadAttention(4, width // 4)(h, h)
            h = layers.LayerNormalization()(x)
            x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(h))
        return keras.Model(tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))

    return build


def _cross_entropy(keras: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _squares(keras: Any) -> Any:
    return keras.losses.MeanSquaredError()


MLP = Problem(dense(64, 128, 10), lambda n: _classes(n, (64,)), _cross_entropy, ("accuracy",))
CONV = Problem(convolutions(8), lambda n: _classes(n, (8, 8, 1)), _cross_entropy, ("accuracy",))
LSTM = Problem(recurrent(40, 64), _words(40), _cross_entropy, ("accuracy",))
SMALL = Problem(dense(10, 64, 32, 1), _numbers, _squares)
LARGE = Problem(dense(784, 512, 512, 10), lambda n: _classes(n, (784,)), _cross_entropy)
IMAGES = Problem(convolutions(28), lambda n: _classes(n, (28, 28, 1)), _cross_entropy)
ATTENTION = Problem(transformer(32, 64), _words(32), _cross_entropy)

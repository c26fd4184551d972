"""A small GPT, made of layers.

Radford et al. 2019, Language Models are Unsupervised Multitask Learners; the transformer is that
of Vaswani et al. 2017, arXiv:1706.03762.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

import gtape as tf

_FORBIDDEN = -1e9


@dataclass(frozen=True)
class Size:
    """Numbers of blocks, features, attention heads and characters of context."""

    blocks: int = 4
    features: int = 128
    heads: int = 4
    context: int = 64


def _dense(units: int, stddev: float, seed: int) -> Any:
    initializer = tf.keras.initializers.RandomNormal(stddev=stddev, seed=seed)
    return tf.keras.layers.Dense(units, kernel_initializer=initializer)


class Attention(tf.keras.layers.Layer):
    """Causal self-attention: [batch, time, features] to the same."""

    def __init__(self, size: Size, stddev: float, seed: int) -> None:
        super().__init__()
        self.size = size
        self.query_key_value = _dense(3 * size.features, 0.02, seed)
        self.projection = _dense(size.features, stddev, seed + 1)
        later = np.triu(np.ones((size.context, size.context), bool), 1)
        self.mask = tf.constant(np.where(later, np.float32(_FORBIDDEN), np.float32(0)))

    def call(self, x: Any) -> Any:
        size = self.size
        width = size.features // size.heads
        by_head = (-1, size.context, size.heads, width)
        query, key, value = (tf.reshape(part, by_head)
                             for part in tf.split(self.query_key_value(x), 3, axis=-1))
        scores = tf.einsum("bqhc,bkhc->bhqk", query, key) / sqrt(width)
        weights = tf.nn.softmax(scores + self.mask)
        mixed = tf.einsum("bhqk,bkhc->bqhc", weights, value)
        return self.projection(tf.reshape(mixed, (-1, size.context, size.features)))


class Block(tf.keras.layers.Layer):
    """x + attention(norm(x)), then x + dense(gelu(dense(norm(x))))."""

    def __init__(self, size: Size, seed: int) -> None:
        super().__init__()
        stddev = 0.02 / sqrt(2 * size.blocks)
        self.norm1 = tf.keras.layers.LayerNormalization(epsilon=1e-5)
        self.attention = Attention(size, stddev, seed)
        self.norm2 = tf.keras.layers.LayerNormalization(epsilon=1e-5)
        self.widen = _dense(4 * size.features, 0.02, seed + 2)
        self.narrow = _dense(size.features, stddev, seed + 3)

    def call(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(tf.nn.gelu(self.widen(self.norm2(x)), approximate=True))


class GPT(tf.keras.Model):
    """Logits [batch, context, characters] of the next character, for int32 [batch, context]."""

    def __init__(self, characters: int, size: Size, seed: int) -> None:
        super().__init__()
        self.size = size
        first = 1000 * seed
        normal = tf.keras.initializers.RandomNormal(stddev=0.02, seed=first)
        self.characters = tf.keras.layers.Embedding(characters, size.features, normal)
        self.positions = self.add_weight(
            (size.context, size.features), name="positions",
            initializer=tf.keras.initializers.RandomNormal(stddev=0.02, seed=first + 1))
        self.blocks = [Block(size, first + 10 * (i + 1)) for i in range(size.blocks)]
        self.norm = tf.keras.layers.LayerNormalization(epsilon=1e-5)
        self.head = _dense(characters, 0.02, first + 2)
        self(tf.zeros((1, size.context), tf.int32))

    def call(self, numbers: Any) -> Any:
        x = self.characters(numbers) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

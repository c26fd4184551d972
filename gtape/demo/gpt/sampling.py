"""Text that the model writes: one character after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import gtape as tf
from gtape.demo.gpt.data import Text
from gtape.demo.gpt.model import GPT

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor


def write(model: GPT, text: Text, start: str, length: int, *, temperature: float = 0.8,
          top_k: int = 20, seed: int = 0, eager: bool = False) -> str:
    """`start` and `length` characters drawn from the model's probabilities.

    Logits are divided by `temperature`; only the `top_k` likeliest characters can be drawn.
    """
    context = model.size.context
    kept = min(top_k, len(text.characters))

    def logits_at(window: Tensor, last: Tensor) -> Tensor:
        return tf.gather(model(window)[0], last)

    compiled = logits_at if eager else tf.function(logits_at)
    numbers = list(text.numbers(start))
    for i in range(length):
        recent = numbers[-context:]
        window = np.zeros((1, context), np.int32)
        window[0, :len(recent)] = recent
        logits = compiled(tf.constant(window), tf.constant(len(recent) - 1)) / temperature
        values, places = tf.math.top_k(logits, kept)
        drawn = tf.random.stateless_categorical(values[None], 1, seed=[seed, i])
        numbers.append(int(places[int(drawn[0, 0])]))
    return text.text(np.array(numbers))

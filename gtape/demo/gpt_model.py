"""A small GPT made of layers: its text, how it is trained, and how it writes.

The network is that of Radford et al. 2019, Language Models are Unsupervised Multitask Learners; the
transformer that of Vaswani et al. 2017, arXiv:1706.03762. The text is what Python's own help pages
are made of: `pydoc_data.topics`, about 370 000 characters. Many pages repeat parts of others, so
every paragraph is kept once: what is held out is nowhere in what is trained on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any

import numpy as np

import gtape as tf
from gtape.core.tensor import Tensor
from gtape.demo.training import DemoError, mean_loss
from gtape.train.experimental import PythonState

#: With this order of the pages, characters are about as hard to guess in both parts.
_SPLIT_SEED = 5


@dataclass(frozen=True)
class Text:
    """Training and held-out text as character numbers int32, and what the numbers mean."""

    characters: str
    train: np.ndarray
    held_out: np.ndarray

    def numbers(self, text: str) -> np.ndarray:
        """A text as numbers int32. Raises ValueError for a character that the pages lack."""
        known = {character: i for i, character in enumerate(self.characters)}
        strange = sorted(set(text) - known.keys())
        if strange:
            raise ValueError(f"the pages do not have the characters {strange}")
        return np.array([known[character] for character in text], np.int32)

    def text(self, numbers: np.ndarray) -> str:
        """The text of numbers."""
        return "".join(self.characters[i] for i in numbers)

    @property
    def fingerprint(self) -> int:
        """Equal for equal texts; versions of Python differ in theirs."""
        return zlib.crc32(self.held_out.tobytes(), zlib.crc32(self.train.tobytes()))


def packaged() -> Mapping[str, str]:
    """The help pages by topic. Raises DemoError: this Python came without them."""
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DemoError("the text is Python's own help, the module pydoc_data of the standard "
                        "library, which this Python lacks; install the full standard library"
                        ) from error
    return topics


def _distinct(pages: Mapping[str, str]) -> list[str]:
    """The pages, long ones first, without paragraphs that an earlier one has."""
    seen: set[str] = set()
    kept = []
    for topic in sorted(pages, key=lambda topic: (-len(pages[topic]), topic)):
        fresh = []
        for paragraph in pages[topic].split("\n\n"):
            # Compared without regard to how lines are broken.
            words = " ".join(paragraph.split())
            if words and words not in seen:
                seen.add(words)
                fresh.append(paragraph.strip("\n"))
        if fresh:
            kept.append("\n\n".join(fresh) + "\n\n\n")
    return kept


def prepared(pages: Mapping[str, str], held_out: float = 0.1) -> Text:
    """Whole pages in random order, of which about the share `held_out` is set aside."""
    distinct = _distinct(pages)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(distinct))
    enough = held_out * sum(map(len, distinct))
    ends = np.cumsum([len(distinct[i]) for i in order])
    cut = int(np.searchsorted(ends, enough)) + 1
    aside, train = ("".join(distinct[i] for i in part) for part in (order[:cut], order[cut:]))
    characters = "".join(sorted(set(aside + train)))
    empty = np.array([], np.int32)
    text = Text(characters, empty, empty)
    return Text(characters, text.numbers(train), text.numbers(aside))


def windows(numbers: np.ndarray, starts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs int32 [n, length] beginning at `starts`, and targets: the characters that follow."""
    at = starts[:, None] + np.arange(length)
    return numbers[at], numbers[at + 1]


def batch(numbers: np.ndarray, size: int, length: int, seed: int, step: int,
          ) -> tuple[np.ndarray, np.ndarray]:
    """Windows at random places, a function of seed and step alone, so that a run can go on."""
    rng = np.random.default_rng([seed, step])
    return windows(numbers, rng.integers(0, len(numbers) - length, size), length)


# So far below any score that its exponential is 0, and finite: -inf - -inf would be nan.
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
        # Of what is added to the stream, so that it does not grow with the number of blocks: GPT-2.
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
        # Every layer has a seed of its own; a block takes ten.
        first = 1000 * seed
        normal = tf.keras.initializers.RandomNormal(stddev=0.02, seed=first)
        self.characters = tf.keras.layers.Embedding(characters, size.features, normal)
        self.positions = self.add_weight(
            (size.context, size.features), name="positions",
            initializer=tf.keras.initializers.RandomNormal(stddev=0.02, seed=first + 1))
        self.blocks = [Block(size, first + 10 * (i + 1)) for i in range(size.blocks)]
        self.norm = tf.keras.layers.LayerNormalization(epsilon=1e-5)
        self.head = _dense(characters, 0.02, first + 2)
        # Built now, so that a checkpoint finds all its variables.
        self(tf.zeros((1, size.context), tf.int32))

    def call(self, numbers: Any) -> Any:
        x = self.characters(numbers) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


_PEAK, _FLOOR = 2e-3, 0.1
_WARMUP = 100


def make_optimizer(model: GPT, steps: int) -> Any:
    """AdamW with linear warm-up and half a cosine; gains and biases are not decayed."""
    # Short runs, as in tests, are not all warm-up.
    warmup = min(_WARMUP, steps // 10 + 1)
    rate = tf.keras.optimizers.schedules.CosineDecay(
        0.0, decay_steps=max(1, steps - warmup), alpha=_FLOOR, warmup_target=_PEAK,
        warmup_steps=warmup)
    optimizer = tf.keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.95, global_clipnorm=1.0)
    # Before it is built: Keras takes the list then.
    optimizer.exclude_from_weight_decay(
        var_list=[v for v in model.trainable_variables if len(v.shape) < 2])
    return optimizer


def make_evaluation(model: GPT, held_out: np.ndarray, *, batches: int, size: int, eager: bool,
                    ) -> Callable[[], float]:
    """A function that gives the mean loss on windows spread evenly over the held-out text."""
    context = model.size.context
    # Always the same windows, so that measurements can be compared.
    starts = np.linspace(0, len(held_out) - context - 1, batches * size).astype(np.int64)
    inputs, targets = windows(held_out, starts, context)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return mean_loss(model, inputs, targets)

    compiled = loss_of if eager else tf.function(loss_of)

    def evaluate() -> float:
        parts = [slice(i * size, (i + 1) * size) for i in range(batches)]
        return float(np.mean([float(compiled(tf.constant(inputs[p]), tf.constant(targets[p])))
                              for p in parts]))

    return evaluate


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that the losses depend on, besides the text, whose fingerprint is noted."""

    steps: int = 2000
    seed: int = 0
    size: Size = field(default_factory=Size)
    batch: int = 16
    #: Of the held-out text, for each measurement.
    held_out_batches: int = 16
    sample: int = 600
    fingerprint: int = 0

    @property
    def every(self) -> int:
        """Steps between two measurements, at each of which a checkpoint is saved."""
        return max(1, self.steps // 10)


@dataclass
class TrainingRecord(PythonState):
    """The plan, the loss of every step, and held-out losses by the number of steps before."""

    plan: TrainingPlan = field(default_factory=TrainingPlan)
    losses: list[float] = field(default_factory=list)
    held_out: dict[int, float] = field(default_factory=dict)

    def serialize(self) -> str:
        # JSON, since a checkpoint keeps texts; keys become strings, which `deserialize` undoes.
        return json.dumps(asdict(self))

    def deserialize(self, string_value: str) -> None:
        state = json.loads(string_value)
        plan = state["plan"]
        self.plan = TrainingPlan(**{**plan, "size": Size(**plan["size"])})
        self.losses = [float(loss) for loss in state["losses"]]
        self.held_out = {int(step): float(loss) for step, loss in state["held_out"].items()}


def write(model: GPT, text: Text, start: str, length: int, *, temperature: float = 0.8,
          top_k: int = 20, seed: int = 0, eager: bool = False) -> str:
    """`start` and `length` characters drawn from the model's probabilities. Logits are divided by
    `temperature`; only the `top_k` likeliest characters can be drawn."""
    context = model.size.context
    kept = min(top_k, len(text.characters))

    # The place is a tensor, and the window always full: one trace serves every length.
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

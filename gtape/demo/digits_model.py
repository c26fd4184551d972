"""The handwritten digits that scikit-learn ships, 1797 grey images of 8 x 8 pixels, and a small
convolutional network that learns to read them, written out in single operations.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository, 1998, doi:10.24432/C50P49.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, pi, sqrt
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import gtape as tf
from gtape.core.tensor import Tensor
from gtape.demo.training import DemoError, make_step, mean_loss, require

SIDE = 8
CLASSES = 10
_PACKAGED = Path("datasets", "data", "digits.csv.gz")
_MAX_GREY = 16


@dataclass(frozen=True)
class Samples:
    """Images float32 [n, 8, 8, 1] in [0, 1] and their labels int32 [n] in [0, 10)."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def packaged_file() -> Path:
    """Where scikit-learn keeps the digits. Raises DemoError: it is not installed, or they are not
    where they should be."""
    # Found without importing scikit-learn, of which nothing else is needed.
    require("sklearn", "the digits come with scikit-learn")
    spec = importlib.util.find_spec("sklearn")
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        file = Path(folder) / _PACKAGED
        if file.is_file():
            return file
    raise DemoError(f"scikit-learn is installed without its data file {_PACKAGED.as_posix()}; "
                    f"run: pip install --force-reinstall scikit-learn")


def read(file: Path) -> Samples:
    """All digits of the file: rows of 64 grey values in [0, 16] and a label. Raises DemoError: it
    holds something else."""
    try:
        with gzip.open(file, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",", dtype=np.float32, ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise DemoError(f"cannot read the digits in {file}: {error}") from error
    pixels = SIDE * SIDE
    if table.shape[1] != pixels + 1 or not np.isin(table[:, pixels], np.arange(CLASSES)).all():
        raise DemoError(f"{file} must hold rows of {pixels} grey values and a label in "
                        f"[0, {CLASSES}); got an array of shape {table.shape}")
    # One channel, as convolutions want it; and greys in [0, 1].
    images = table[:, :pixels].reshape(-1, SIDE, SIDE, 1) / np.float32(_MAX_GREY)
    return Samples(images, table[:, pixels].astype(np.int32))


def split(samples: Samples, held_out: float, seed: int) -> tuple[Samples, Samples]:
    """(training samples, held-out samples): a shuffle of all, then a cut; disjoint."""
    order = np.random.default_rng(seed).permutation(len(samples))
    cut = len(samples) - round(held_out * len(samples))
    train, test = order[:cut], order[cut:]
    return (Samples(samples.images[train], samples.labels[train]),
            Samples(samples.images[test], samples.labels[test]))


def batches(samples: Samples, size: int, rng: np.random.Generator) -> Iterator[Samples]:
    """One epoch of full batches in a new order; the rest that fills none is left out."""
    # The last, smaller batch is left out: another shape would be another trace.
    order = rng.permutation(len(samples))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start:start + size]
        yield Samples(samples.images[chosen], samples.labels[chosen])


def _he_normal(shape: tuple[int, ...], fan_in: int, seed: tuple[int, int]) -> Tensor:
    """Normal weights of variance 2 / fan_in: He, Zhang, Ren & Sun 2015, arXiv:1502.01852."""
    return tf.random.stateless_normal(shape, seed=seed, stddev=sqrt(2 / fan_in))


class DigitsNet(tf.Module):
    """Logits [n, 10] of images float32 [n, 8, 8, 1]. A 3 x 3 convolution, relu, a 2 x 2 maximum, a
    3 x 3 convolution, relu, one dense layer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.kernel1 = tf.Variable(_he_normal((3, 3, 1, 16), 9, (seed, 1)), name="kernel1")
        self.bias1 = tf.Variable(tf.zeros(16), name="bias1")
        self.kernel2 = tf.Variable(_he_normal((3, 3, 16, 32), 144, (seed, 2)), name="kernel2")
        self.bias2 = tf.Variable(tf.zeros(32), name="bias2")
        self.weight = tf.Variable(_he_normal((512, CLASSES), 512, (seed, 3)), name="weight")
        self.bias = tf.Variable(tf.zeros(CLASSES), name="bias")

    def __call__(self, images: Tensor) -> Any:
        x = tf.nn.conv2d(images, self.kernel1, strides=1, padding="SAME")
        x = tf.nn.relu(x + self.bias1)
        x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")

        x = tf.nn.conv2d(x, self.kernel2, strides=1, padding="SAME")
        x = tf.nn.relu(x + self.bias2)

        # 4 x 4 pixels of 32 channels.
        x = tf.reshape(x, (-1, 512))
        return tf.matmul(x, self.weight) + self.bias


def parameter_count(model: DigitsNet) -> int:
    return sum(v.numpy().size for v in model.trainable_variables)


def save(model: DigitsNet, file: Path) -> None:
    """Write every variable under its name."""
    tf.train.Checkpoint(model).write(file)


def load(file: Path) -> DigitsNet:
    """A new model with the variables of a checkpoint. Raises DemoError: the file is no checkpoint
    of this model: other names, shapes or dtypes."""
    # Any seed: every variable is overwritten, or the load fails.
    model = DigitsNet(seed=0)
    try:
        tf.train.Checkpoint(model).read(file).expect_partial().assert_consumed()
    except (tf.errors.OpError, AssertionError, OSError) as error:
        raise DemoError(f"cannot load the checkpoint {file}: {error}") from error
    return model


class TrainingStep(NamedTuple):
    """One optimizer step: its number from 1, the loss before it, its wall time."""

    number: int
    loss: float
    seconds: float


def steps_per_epoch(samples: Samples, batch_size: int) -> int:
    return len(samples) // batch_size


def cosine_decay(peak: float, done: float) -> float:
    """peak (1 + cos(pi done)) / 2 for done in [0, 1]: Loshchilov & Hutter, arXiv:1608.03983."""
    return peak * (1 + cos(pi * done)) / 2


def train(model: DigitsNet, samples: Samples, *, steps: int, batch_size: int,
          learning_rate: float, seed: int, eager: bool) -> Iterator[TrainingStep]:
    """Train for `steps` steps of Adam (Kingma & Ba 2014, arXiv:1412.6980), one per item."""
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    train_step = make_step(model, optimizer, eager)
    rng = np.random.default_rng(seed)
    number = 0
    while number < steps:
        for batch in batches(samples, batch_size, rng):
            start = perf_counter()
            # Assigned to a variable, so that the compiled step is not traced again.
            optimizer.learning_rate = cosine_decay(learning_rate, number / steps)
            loss = float(train_step(tf.constant(batch.images), tf.constant(batch.labels)))
            number += 1
            yield TrainingStep(number, loss, perf_counter() - start)
            if number == steps:
                return


class HeldBytes(NamedTuple):
    """One operation on the tape, the line that called it, and the bytes kept for its gradient."""

    op: str
    place: str
    source: str
    bytes: int


def bill(model: DigitsNet, batch: Samples) -> list[HeldBytes]:
    """The rows of `tape.memory()` for one step, in the order of recording."""
    with tf.GradientTape() as tape:
        mean_loss(model, tf.constant(batch.images), tf.constant(batch.labels))
    return [HeldBytes(row.op, f"{Path(row.site.file).name}:{row.site.line}", row.site.text,
                      row.bytes)
            for row in tape.memory()]


class Evaluation(NamedTuple):
    """Class probabilities float32 [n, 10] of `samples`."""

    samples: Samples
    probabilities: np.ndarray

    @property
    def predicted(self) -> np.ndarray:
        return self.probabilities.argmax(axis=1)

    @property
    def mistakes(self) -> np.ndarray:
        """Indices of the misread images, the worst first: least probability of the true label."""
        wrong = np.flatnonzero(self.predicted != self.samples.labels)
        return wrong[np.argsort(self.probabilities[wrong, self.samples.labels[wrong]])]

    @property
    def accuracy(self) -> float:
        """The fraction read right."""
        return float((self.predicted == self.samples.labels).mean())

    @property
    def confusion(self) -> np.ndarray:
        """Counts int [10, 10]: row the true label, column the predicted one."""
        counts = np.zeros((CLASSES, CLASSES), np.int64)
        # add.at counts a pair that comes several times; counts[i, j] += 1 would count it once.
        np.add.at(counts, (self.samples.labels, self.predicted), 1)
        return counts


def evaluate(model: DigitsNet, samples: Samples) -> Evaluation:
    """The model's probabilities for every sample."""
    # All at once: a few hundred small pictures fit into any memory.
    probabilities = tf.nn.softmax(model(tf.constant(samples.images)))
    return Evaluation(samples, probabilities.numpy())

"""How well a model reads the held-out digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import gtape as tf
from gtape.demo.data import CLASSES, Samples
from gtape.demo.model import DigitsNet


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
        np.add.at(counts, (self.samples.labels, self.predicted), 1)
        return counts


def evaluate(model: DigitsNet, samples: Samples) -> Evaluation:
    """The model's probabilities for every sample."""
    probabilities = tf.nn.softmax(model(tf.constant(samples.images)))
    return Evaluation(samples, probabilities.numpy())

"""A small convolutional network, written out in single operations, and its checkpoint."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gtape as tf
from gtape.demo.data import CLASSES
from gtape.demo.environment import DemoError

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor


def _he_normal(shape: tuple[int, ...], fan_in: int, seed: tuple[int, int]) -> Tensor:
    """Normal weights of variance 2 / fan_in: He, Zhang, Ren & Sun 2015, arXiv:1502.01852."""
    return tf.random.stateless_normal(shape, seed=seed, stddev=sqrt(2 / fan_in))


class DigitsNet(tf.Module):
    """Logits [n, 10] of images float32 [n, 8, 8, 1].

    A 3 x 3 convolution, relu, a 2 x 2 maximum, a 3 x 3 convolution, relu, one dense layer.
    """

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

        x = tf.reshape(x, (-1, 512))
        return tf.matmul(x, self.weight) + self.bias


def parameter_count(model: DigitsNet) -> int:
    return sum(v.numpy().size for v in model.trainable_variables)


def save(model: DigitsNet, file: Path) -> None:
    """Write every variable under its name."""
    tf.train.Checkpoint(model).write(file)


def load(file: Path) -> DigitsNet:
    """A new model with the variables of a checkpoint.

    Raises:
        DemoError: the file is no checkpoint of this model: other names, shapes or dtypes.
    """
    model = DigitsNet(seed=0)
    try:
        tf.train.Checkpoint(model).read(file).expect_partial().assert_consumed()
    except (tf.errors.OpError, AssertionError, OSError) as error:
        raise DemoError(f"cannot load the checkpoint {file}: {error}") from error
    return model

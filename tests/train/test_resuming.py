"""Ten steps are the same as five, a checkpoint, and five by objects made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import train

optimizers = tf.keras.optimizers


def rates() -> Any:
    return optimizers.schedules.CosineDecay(0.0, 20, warmup_target=0.05, warmup_steps=3)


#: Every kind of state that an optimizer can have.
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: optimizers.SGD(0.01, momentum=0.9),
    "nesterov": lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=True, clipvalue=0.5),
    "adam": lambda: optimizers.Adam(rates()),
    "amsgrad": lambda: optimizers.Adam(0.01, amsgrad=True),
    "adamw": lambda: optimizers.AdamW(0.01, global_clipnorm=1.0),
    "lion": lambda: optimizers.Lion(0.01, weight_decay=0.1),
    "rmsprop": lambda: optimizers.RMSprop(rates(), momentum=0.9, centered=True, clipnorm=1.0,
                                          use_ema=True, ema_overwrite_frequency=4),
    "accumulation": lambda: optimizers.Adam(0.01, gradient_accumulation_steps=3),
    "scaled": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.01),
                                                    dynamic_growth_steps=3),
    "several": lambda: optimizers.MultiOptimizer(optimizers.OptimizerMap(
        optimizers.Adam(0.01), {".*bias": optimizers.SGD(0.01, momentum=0.9)})),
}


class Program:
    """A network with dropout, noise and moving averages, fitted to random batches."""

    def __init__(self, make_optimizer: Callable[[], Any]) -> None:
        layers = tf.keras.layers
        self.model = tf.keras.Sequential([
            tf.keras.Input((4,)),
            layers.Dense(8, activation="tanh",
                         kernel_initializer=tf.keras.initializers.RandomNormal(seed=1)),
            layers.BatchNormalization(), layers.Dropout(0.3, seed=2),
            layers.Dense(3, kernel_initializer=tf.keras.initializers.RandomNormal(seed=3))])
        self.optimizer = make_optimizer()
        self.rng = np.random.default_rng(5)
        self.checkpoint = train.Checkpoint(model=self.model, optimizer=self.optimizer,
                                           batches=self.rng, random=train.RandomStreams())

    def step(self, x: Any) -> Any:
        """The loss before one update."""
        x += 0.1 * tf.random.normal((6, 4))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.model(x, training=True) ** 2)
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def run(self, steps: int, compiled: bool = False) -> list[float]:
        """The losses of so many steps."""
        step = tf.function(self.step) if compiled else self.step
        batches = [self.rng.normal(size=(6, 4)).astype(np.float32) for _ in range(steps)]
        return [float(step(tf.constant(batch))) for batch in batches]


def _weights(program: Program) -> list[np.ndarray]:
    return [v.numpy() for v in (*program.model.weights, *program.optimizer.variables)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_resumed_run_is_the_same_bit_by_bit(kind: str, compiled: bool, tmp_path: Path) -> None:
    tf.random.set_seed(3)
    whole = Program(OPTIMIZERS[kind])
    expected = whole.run(10, compiled)

    tf.random.set_seed(3)
    first = Program(OPTIMIZERS[kind])
    losses = first.run(5, compiled)
    path = first.checkpoint.write(tmp_path / "half")

    tf.random.set_seed(99)
    second = Program(OPTIMIZERS[kind])
    second.checkpoint.restore(path).assert_consumed()
    assert losses + second.run(5, compiled) == expected
    for found, wanted in zip(_weights(second), _weights(whole), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_built_optimizer_is_restored_in_place(tmp_path: Path) -> None:
    program = Program(OPTIMIZERS["adam"])
    tf.random.set_seed(1)
    program.run(3)
    path = program.checkpoint.write(tmp_path / "three")
    expected = program.run(4)
    program.checkpoint.restore(path).assert_consumed()
    assert program.run(4) == expected


def test_without_the_random_streams_the_resumed_run_differs(tmp_path: Path) -> None:
    tf.random.set_seed(3)
    expected = Program(OPTIMIZERS["adam"]).run(10)

    tf.random.set_seed(3)
    first = Program(OPTIMIZERS["adam"])
    first.run(5)
    path = train.Checkpoint(model=first.model, optimizer=first.optimizer).write(tmp_path / "half")
    tf.random.set_seed(99)
    second = Program(OPTIMIZERS["adam"])
    train.Checkpoint(model=second.model, optimizer=second.optimizer).restore(path)
    assert second.run(5) != expected[5:]


def test_a_generator_goes_on_where_it_was(tmp_path: Path) -> None:
    generator = tf.random.Generator.from_seed(7)
    generator.normal((3,))
    path = train.Checkpoint(generator=generator).write(tmp_path / "generator")
    expected = generator.normal((5,)).numpy()
    other = tf.random.Generator.from_seed(8)
    train.Checkpoint(generator=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other.normal((5,)).numpy(), expected)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox,
                                  np.random.SFC64])
def test_numpy_generators_go_on(kind: type[np.random.BitGenerator], tmp_path: Path) -> None:
    rng = np.random.Generator(kind(3))
    rng.normal(size=3)
    path = train.Checkpoint(rng=rng).write(tmp_path / "rng")
    expected = rng.integers(0, 1000, 8)
    other = np.random.Generator(kind(4))
    train.Checkpoint(rng=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other.integers(0, 1000, 8), expected)


def test_op_seeds_go_on(tmp_path: Path) -> None:
    tf.random.set_seed(5)
    tf.random.uniform((3,), seed=1)
    path = train.Checkpoint(random=train.RandomStreams()).write(tmp_path / "streams")
    expected = [tf.random.uniform((2,), seed=seed).numpy() for seed in (1, 2, None)]
    tf.random.set_seed(6)
    train.Checkpoint(random=train.RandomStreams()).restore(path).assert_consumed()
    for seed, wanted in zip((1, 2, None), expected):
        np.testing.assert_array_equal(tf.random.uniform((2,), seed=seed).numpy(), wanted)

"""What checkpoints keep of Keras' layers, optimizers, metrics and seeds, and under which names."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.train import stored

Checkpoint = tf.train.Checkpoint
layers = tf.keras.layers
Pair = namedtuple("Pair", "left right")


def names(path: str) -> list[str]:
    return sorted(stored.read(Path(path)).arrays)


class Net(tf.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Dense(2, use_bias=False)
        self._second = layers.Dense(2, use_bias=False)
        self.many = {"a": [layers.Dense(2, use_bias=False)], "b": OrderedDict()}
        self.pair = Pair(layers.Dense(1, use_bias=False), 3)
        self.scale = tf.Variable(2.0)

    def call(self, x: Any) -> Any:
        return self.pair.left(self.many["a"][0](self._second(self.first(x)))) * self.scale


def test_a_subclassed_model_by_its_attributes(tmp_path: Path) -> None:
    net = Net()
    net(tf.ones((1, 3)))
    assert names(Checkpoint(net=net).write(tmp_path / "x")) == [
        "net/first/kernel", "net/many/a/0/kernel", "net/pair/0/kernel", "net/scale",
        "net/second/kernel"]


def test_a_functional_model_by_its_layers(tmp_path: Path) -> None:
    given = tf.keras.Input((3,))
    x = layers.Dense(2, name="x")(given)
    model = tf.keras.Model(given, layers.Add()([x, layers.BatchNormalization()(x)]))
    found = names(Checkpoint(model=model).write(tmp_path / "x"))
    assert found == ["model/layers/1/bias", "model/layers/1/kernel", *(
        f"model/layers/2/{name}" for name in ("beta", "gamma", "moving_mean", "moving_variance"))]


def test_what_only_keras_lists_is_saved(tmp_path: Path) -> None:
    class Odd(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inside = {layers.Dense(2, use_bias=False)}

        def build(self, shape: Any) -> None:
            for layer in self.inside:
                layer.build(shape)
            self.weights_of_mine = [self.add_weight((1,), name="w")]
            self.add_weight((1,), name="loose")

    odd = Odd()
    odd.build((None, 3))
    assert names(Checkpoint(odd=odd).write(tmp_path / "x")) == [
        "odd/layers/0/kernel", "odd/loose", "odd/weights_of_mine/0"]


def test_a_compiled_model_brings_its_optimizer_and_no_metrics(tmp_path: Path) -> None:
    def made() -> Any:
        model = tf.keras.Sequential([tf.keras.Input((2,)), layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"])
        return model

    def step(model: Any) -> None:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=tf.ones((4, 1)), y_pred=model(tf.ones((4, 2))))
        weights = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, weights), weights)

    model = made()
    step(model)
    path = Checkpoint(model=model).write(tmp_path / "x")
    assert names(path) == [
        "model/layers/0/bias", "model/layers/0/kernel", "model/optimizer/iterations",
        "model/optimizer/learning_rate", "model/optimizer/momentums/model/layers/0/bias",
        "model/optimizer/momentums/model/layers/0/kernel"]
    other = made()
    Checkpoint(model=other).restore(path).assert_consumed()
    for one in (model, other):
        step(one)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_seeds_and_metrics_go_on(tmp_path: Path) -> None:
    seed, mean = tf.keras.random.SeedGenerator(1), tf.keras.metrics.Mean()
    drop = layers.Dropout(0.5, seed=2)
    seed.next()
    drop(tf.ones((3,)), training=True)
    mean.update_state([1.0, 2.0])
    path = Checkpoint(seed=seed, mean=mean, drop=drop).write(tmp_path / "x")
    assert names(path) == ["drop/seed_generator/state", "mean/0", "mean/1", "seed/state"]
    expected = [tf.keras.random.normal((3,), seed=seed).numpy(),
                drop(tf.ones((20,)), training=True).numpy()]
    others = {"seed": tf.keras.random.SeedGenerator(5), "mean": tf.keras.metrics.Mean(),
              "drop": layers.Dropout(0.5)}
    Checkpoint(**others).restore(path).assert_consumed()
    np.testing.assert_array_equal(tf.keras.random.normal((3,), seed=others["seed"]), expected[0])
    np.testing.assert_array_equal(others["drop"](tf.ones((20,)), training=True), expected[1])
    assert float(others["mean"].result()) == 1.5


def test_a_normalization_is_restored_with_what_it_computes(tmp_path: Path) -> None:
    def made() -> Any:
        layer = layers.Normalization()
        layer.build((None, 2))
        return layer

    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    adapted, fresh = made(), made()
    adapted.adapt(x)
    Checkpoint(layer=fresh).restore(Checkpoint(layer=adapted).write(tmp_path / "x"))
    assert fresh(x).numpy().tolist() == [[-1, -1], [1, 1]]


def _wrapped() -> Any:
    keep = tf.keras.optimizers
    return keep.MultiOptimizer(keep.OptimizerMap(keep.Adam(0.1), {".*bias": keep.SGD(0.1)}))


@pytest.mark.parametrize("made", [
    lambda: tf.keras.optimizers.Adam(0.1, use_ema=True, gradient_accumulation_steps=2),
    lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(0.1)), _wrapped,
    lambda: tf.keras.optimizers.Adafactor(0.1), lambda: tf.keras.optimizers.Nadam(0.1),
    lambda: tf.keras.optimizers.Ftrl(0.1), lambda: tf.keras.optimizers.Lamb(0.1),
], ids=["adam", "scaled", "several", "adafactor", "nadam", "ftrl", "lamb"])
def test_every_variable_of_an_optimizer_is_saved_and_a_failure_leaves_it_unbuilt(
        made: Any, tmp_path: Path) -> None:
    def program() -> tuple[Any, Any, Any]:
        layer, optimizer = layers.Dense(2), made()
        layer.build((None, 3))
        return layer, optimizer, Checkpoint(layer=layer, optimizer=optimizer)

    def step(layer: Any, optimizer: Any) -> list[Any]:
        optimizer.apply([tf.ones(v.shape) for v in layer.trainable_variables],
                        layer.trainable_variables)
        return [v.numpy() for v in (*layer.variables, *optimizer.variables)]

    layer, optimizer, checkpoint = program()
    step(layer, optimizer)
    path = Path(checkpoint.write(tmp_path / "x"))
    held = stored.read(path)
    assert len(held.arrays) == len(optimizer.variables) + len(layer.variables)
    wanted = step(layer, optimizer)

    bad = stored.read(path)
    bad.arrays["layer/kernel"] = np.zeros(7, np.float32)
    stored.write(bad, tmp_path / "bad.safetensors")
    fresh, other, again = program()
    before = len(other.variables)
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing was restored"):
        again.restore(tmp_path / "bad")
    assert not other.built and len(other.variables) == before

    again.restore(path).assert_consumed()
    for found, value in zip(step(fresh, other), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


def test_plain_modules_are_saved_without_keras(tmp_path: Path) -> None:
    program = ("import sys, gtape as tf\nm = tf.Module()\nm.v = tf.Variable([1.0])\n"
               f"c = tf.train.Checkpoint(m=m)\nc.restore(c.save({str(tmp_path / 'x')!r}))\n"
               "m.variables, m.submodules\n"
               "print([n for n in sys.modules if n.split('.')[0] in ('keras', 'h5py')])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=True)
    assert done.stdout.strip() == "[]"

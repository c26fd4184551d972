"""Layers without their weights are named, at any depth, and layers that have none are let pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gtape as tf

Checkpoint = tf.train.Checkpoint
layers = tf.keras.layers


class Net(tf.Module):
    def __init__(self, built: bool = False) -> None:
        super().__init__()
        self.d = layers.Dense(3)
        self.drop = layers.Dropout(0.5)
        if built:
            self.d.build((None, 2))


class Model(tf.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [tf.keras.Sequential([layers.Dense(2)]), layers.Dense(2)]

    def call(self, x: Any) -> Any:
        return self.blocks[0](x)


class Plain(layers.Layer):
    """No weights, no `build`, and not built until it is called."""

    def call(self, x: Any) -> Any:
        return x


def test_the_helpers_are_what_they_are_for() -> None:
    assert not Plain().built and not Net().d.built and Net(built=True).d.built


@pytest.mark.parametrize("objects, path", [
    (lambda: {"net": Net()}, "net/d"),
    (lambda: {"root": Net()}, "d"),
    (lambda: {"root": layers.Dense(2), "v": tf.Variable(1.0)}, "root"),
    (lambda: {"nets": [Net(built=True), {"x": Net()}]}, "nets/1/x/d"),
    (lambda: {"inner": Checkpoint(net=Net())}, "inner/net/d"),
    (lambda: {"model": Model()}, "model"),
    (lambda: {"net": tf.keras.Sequential([layers.Dense(2)])}, "net"),
    (lambda: {"nets": [tf.keras.Sequential([Plain(), layers.Dense(2)])]}, "nets/0"),
    (lambda: {"around": [layers.Bidirectional(layers.LSTM(2))]}, "around/0"),
], ids=["module", "root", "layer as root", "containers", "checkpoint", "model", "chain",
        "chain inside", "wrapper"])
def test_an_unbuilt_layer_is_named(objects: Any, path: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(**objects())
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"^'{path}' has no variables"):
        checkpoint.save(tmp_path / "u")
    assert int(checkpoint.save_counter) == 0 and not list(tmp_path.iterdir())


def test_all_are_named(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'a/d'.*nor have b/d, c/d"):
        Checkpoint(a=Net(), b=Net(), c=Net()).write(tmp_path / "u")


def test_a_restore_does_not_pass_over_them(tmp_path: Path) -> None:
    full = Checkpoint(net=Net(built=True), v=tf.Variable(2.0)).write(tmp_path / "full")
    empty = Checkpoint(v=tf.Variable(2.0)).write(tmp_path / "empty")
    for path in (full, empty):
        v = tf.Variable(0.0)
        with pytest.warns(UserWarning, match="not built yet: net/d"):
            Checkpoint(net=Net(), v=v).restore(path)
        status = Checkpoint(net=Net(), v=v).restore(path).expect_partial()
        for check in (status.assert_consumed, status.assert_existing_objects_matched):
            with pytest.raises(AssertionError, match="not built yet: net/d"):
                check()
        assert float(v) == 2
    Checkpoint(net=Net(built=True), v=tf.Variable(0.0)).restore(full).assert_consumed()


def test_a_restore_names_an_unbuilt_root(tmp_path: Path) -> None:
    path = Checkpoint(v=tf.Variable(2.0)).write(tmp_path / "v")
    status = Checkpoint(layers.Dense(2), v=tf.Variable(0.0)).restore(path)
    with pytest.raises(AssertionError, match="not built yet: root"):
        status.assert_consumed()


def test_layers_without_weights_need_no_build(tmp_path: Path) -> None:
    def objects() -> dict[str, Any]:
        chain = tf.keras.Sequential([layers.Flatten(), layers.Dropout(0.5), Plain()])
        return {"kept": [chain, tf.keras.Sequential(), Plain(), layers.Activation("relu"),
                         layers.MaxPooling2D()], "v": tf.Variable(1.0)}

    path = Checkpoint(**objects()).write(tmp_path / "x")
    Checkpoint(**objects()).restore(path).assert_consumed()


def test_a_container_whose_layers_are_built_needs_no_build(tmp_path: Path) -> None:
    first, second = layers.Dense(2), layers.Dense(2)
    chain = tf.keras.Sequential([first, second])
    for layer in (first, second):
        layer.build((None, 2))
    assert not chain.built
    Checkpoint(kept=[chain]).write(tmp_path / "x")


@pytest.mark.parametrize("make, shape", [
    (lambda: layers.Bidirectional(layers.LSTM(2)), (1, 3, 2)),
    (lambda: layers.TimeDistributed(layers.Dense(2)), (1, 3, 2)),
    (lambda: layers.RNN(layers.GRUCell(2)), (1, 3, 2)),
    (lambda: layers.BatchNormalization(), (2, 3)),
    (lambda: layers.SeparableConv2D(2, 3), (1, 5, 5, 2)),
    (lambda: layers.Conv2DTranspose(2, 3), (1, 5, 5, 2)),
    (lambda: layers.PReLU(), (2, 3)),
], ids=["bidirectional", "each step", "cell", "averages", "separable", "transposed", "prelu"])
def test_every_part_of_a_called_layer_is_built(make: Any, shape: tuple[int, ...],
                                               tmp_path: Path) -> None:
    layer = make()
    layer(tf.ones(shape))
    Checkpoint(kept=[layer]).write(tmp_path / "x")


def test_the_parts_of_attention_are_built(tmp_path: Path) -> None:
    layer = layers.MultiHeadAttention(2, 4)
    layer(tf.ones((1, 3, 4)), tf.ones((1, 3, 4)))
    Checkpoint(kept=[layer]).write(tmp_path / "x")


@pytest.mark.filterwarnings("ignore:.build\\(\\). was called:UserWarning")
def test_what_a_built_model_never_calls_is_let_pass(tmp_path: Path) -> None:
    model = Model()
    model(tf.ones((1, 2)))
    path = Checkpoint(model=model).write(tmp_path / "ck")
    other = Model()
    other(tf.ones((1, 2)))
    Checkpoint(model=other).restore(path).assert_consumed()

"""fit, evaluate and predict: one compiled program a step, results as Keras' own way gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf

keras = tf.keras


def model_of(*layers: Any, features: int = 4, **options: Any) -> Any:
    made = keras.Sequential([keras.Input((features,)), *layers])
    made.compile(**{"optimizer": "sgd", "loss": "mse", **options})
    return made


def data(n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    return x, x.sum(1, keepdims=True)


def losses(**options: Any) -> list[float]:
    x, y = data()
    keras.utils.set_random_seed(3)
    model = model_of(keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1), **options)
    found = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    return [*found.history["loss"], model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)]


def test_compiled_and_eager_train_alike() -> None:
    for compiled, eager in zip(losses(), losses(run_eagerly=True)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5)


def test_several_steps_an_execution_train_alike() -> None:
    one, several = losses(), losses(steps_per_execution=2)
    for a, b in zip(one, several):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_step_is_traced_once_a_batch_size() -> None:
    traced = []

    class Counting(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            traced.append(x.shape)
            return x

    x, y = data(20)
    model = model_of(Counting(), keras.layers.Dense(1))
    traced.clear()
    model.fit(x, y, batch_size=8, epochs=5, verbose=0)
    assert 1 <= len(traced) <= 3  # the batches of 8, those of 4, or both at once


def test_choices_on_tensors_in_call_are_converted() -> None:
    class Choosing(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            total = tf.reduce_sum(x)
            if total > 0:
                x = x * 2.0
            for _ in tf.range(2):
                x = x + 1.0
            return x

    model = model_of(Choosing())
    up, down = np.ones((1, 4), np.float32), -np.ones((1, 4), np.float32)
    np.testing.assert_allclose(model.predict(up, verbose=0), 4.0 * up)
    np.testing.assert_allclose(model.predict(down, verbose=0), down + 2.0)
    np.testing.assert_allclose(model(tf.constant(up)), 4.0 * up)


def test_a_train_step_of_the_users_is_converted() -> None:
    class Clipping(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            if loss > 1.0:
                loss = tf.ones(())
            return {"capped": loss}

    model = Clipping()
    model.compile("sgd")
    x = np.ones((8, 2), np.float32)
    assert model.fit(x, 10 * np.ones((8, 1), np.float32), verbose=0).history["capped"] == [1.0]


def test_batches_of_dicts_with_weights_of_samples_and_classes() -> None:
    a, b = keras.Input((2,), name="a"), keras.Input((3,), name="b")
    model = keras.Model({"a": a, "b": b}, keras.layers.Dense(3)(keras.layers.concatenate([a, b])))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  weighted_metrics=["accuracy"])
    rng = np.random.default_rng(1)
    x = {"b": rng.standard_normal((9, 3)), "a": rng.standard_normal((9, 2))}
    y, weights = rng.integers(0, 3, 9), rng.random(9)
    fitted = model.fit(x, y, sample_weight=weights, batch_size=4, verbose=0,
                       validation_data=(x, y))
    assert set(fitted.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    model.fit(x, y, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, batch_size=4, verbose=0)
    assert model.predict(x, verbose=0).shape == (9, 3)


def test_training_one_batch_and_another() -> None:
    x, y = data(8)
    model = model_of(keras.layers.Dense(1))
    before = model.test_on_batch(x, y)
    for _ in range(5):
        model.train_on_batch(x, y)
    assert model.test_on_batch(x, y) < before
    assert model.predict_on_batch(x).shape == (8, 1)


def test_a_generator_that_raises_is_named_with_its_line() -> None:
    def batches() -> Iterator[Any]:
        yield data(4)
        raise RuntimeError("the disk is gone")

    model = model_of(keras.layers.Dense(1))
    weights = model.get_weights()
    with pytest.raises(Exception, match="the disk is gone"):
        model.fit(batches(), steps_per_epoch=3, verbose=0)
    assert all(w.shape == v.shape for w, v in zip(weights, model.get_weights()))


def test_an_endless_dataset_needs_a_number_of_steps() -> None:
    model = model_of(keras.layers.Dense(1))
    endless = tf.data.Dataset.from_tensor_slices(data(8)).batch(4).repeat()
    with pytest.raises(ValueError, match="steps_per_epoch"):
        model.fit(endless, verbose=0)
    model.fit(endless, steps_per_epoch=3, verbose=0)


@pytest.mark.native
def test_progress_says_how_long_it_waited_for_the_compiler(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from gtape.compile import gradual
    from gtape.engine import training

    monkeypatch.setattr(training, "_NOTABLE_SECONDS", 0.0)
    monkeypatch.setattr(gradual, "MOST", 3)
    x, y = data(16)
    for verbose, said in ((2, True), (0, False)):
        model_of(keras.layers.Dense(1)).fit(x, y, batch_size=4, verbose=verbose)
        assert ("for the step to be compiled" in capsys.readouterr().out) == said


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [
    {}, {"return_sequences": True}, {"go_backwards": True}, {"return_state": True}],
    ids=lambda o: ",".join(o) or "plain")
def test_sequences_as_a_whole_equal_keras_own_steps(layer: str, options: dict[str, bool]) -> None:
    x = tf.constant(np.random.default_rng(2).standard_normal((3, 5, 2)), tf.float64)

    def of(unroll: bool) -> list[Any]:
        keras.utils.set_random_seed(1)
        made = getattr(keras.layers, layer)(4, unroll=unroll, dtype="float64",
                                            bias_initializer="random_normal", **options)
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = tf.nest.flatten(made(x))
            loss = tf.add_n([tf.reduce_sum(o**2) for o in out])
        return [*out, *tape.gradient(loss, [x, *made.trainable_variables])]

    for ours, own in zip(of(False), of(True), strict=True):
        np.testing.assert_allclose(ours, own, rtol=1e-9, atol=1e-12)


def test_second_derivatives_go_through_an_lstm() -> None:
    keras.utils.set_random_seed(1)
    layer = keras.layers.LSTM(2, dtype="float64")
    x = tf.constant(np.random.default_rng(2).standard_normal((1, 3, 2)), tf.float64)

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(layer(x) ** 2)
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        g = slope(x)[0, 1, 0]
    second, step = tape.gradient(g, x).numpy(), 1e-6
    move = np.zeros_like(x.numpy())
    move[0, 0, 1] = step
    numeric = (slope(x + move) - slope(x - move))[0, 1, 0] / (2 * step)
    np.testing.assert_allclose(second[0, 0, 1], numeric, rtol=1e-6)

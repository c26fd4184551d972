"""Models: Sequential, subclasses, fit, evaluate, predict, weight files."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

keras = tf.keras
layers = keras.layers
RNG = np.random.default_rng(0)
X = RNG.standard_normal((64, 4)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int64)


def classifier():
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(2)])


def compiled(**kwargs):
    model = classifier()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.02), loss, metrics=["accuracy"], **kwargs)
    return model


def test_sequential_builds_at_its_first_call():
    model = classifier()
    assert not model.built and model.trainable_variables == []
    assert model(X[:3]).shape == (3, 2)
    assert model.built and model.count_params() == 4 * 8 + 8 + 8 * 2 + 2
    assert [type(v).__name__ for v in model.trainable_variables] == ["KerasVariable"] * 4


def test_sequential_builds_from_an_input():
    assert len(keras.Sequential([keras.Input((4,)), layers.Dense(3)]).weights) == 2
    with pytest.warns(UserWarning, match="Input"):
        model = keras.Sequential([layers.Dense(3, input_shape=(10,))])
    assert model.weights[0].shape == (10, 3)
    assert len(model.layers) == 1


def test_sequential_add_and_pop():
    model = keras.Sequential()
    model.add(keras.Input((4,)))
    model.add(layers.Dense(3, name="first"))
    model.add(layers.Dense(2))
    assert len(model.weights) == 4
    model.pop()
    assert [layer.name for layer in model.layers] == ["first"]
    assert len(model.weights) == 2
    with pytest.raises(ValueError):
        model.add(layers.Dense(1, name="first"))
    with pytest.raises(ValueError):
        model.add(3)
    assert model.get_layer("first") is model.get_layer(index=0)
    with pytest.raises(ValueError):
        model.get_layer("none")


class Residual(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(4)
        self.drop = layers.Dropout(0.5)

    def call(self, x, training=False):
        return x + self.drop(self.inner(x), training=training)


def test_subclassed_model():
    model = Residual()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X, training=True) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert all(g is not None for g in gradients) and len(gradients) == 2
    assert [v.path for v in model.weights] == [f"{model.name}/{model.inner.name}/kernel",
                                               f"{model.name}/{model.inner.name}/bias"]
    np.testing.assert_array_equal(model(X), model(X))


def test_no_functional_api():
    with pytest.raises(NotImplementedError, match="subclass"):
        keras.Model(inputs=1, outputs=2)


def test_fit_learns_and_reports():
    model = compiled()
    history = model.fit(X, LABELS, epochs=30, batch_size=16, verbose=0,
                        validation_data=(X, LABELS))
    assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert len(history.history["loss"]) == 30
    assert history.history["loss"][-1] < history.history["loss"][0]
    loss, accuracy = model.evaluate(X, LABELS, verbose=0)
    assert accuracy > 0.8
    assert model.evaluate(X, LABELS, verbose=0, return_dict=True)["loss"] == pytest.approx(loss)
    predictions = model.predict(X, batch_size=10, verbose=0)
    np.testing.assert_allclose(predictions, model(X), rtol=1e-5, atol=1e-6)


def test_fit_is_repeatable():
    losses = []
    for _ in range(2):
        model = compiled()
        losses.append(model.fit(X, LABELS, epochs=2, verbose=0).history["loss"])
    assert losses[0] == losses[1]


def test_fit_from_batches_and_splits():
    model = compiled()
    batches = [(X[i:i + 16], LABELS[i:i + 16]) for i in range(0, 64, 16)]
    assert len(model.fit(batches, epochs=2, verbose=0, steps_per_epoch=2).epoch) == 2
    history = model.fit(X, LABELS, verbose=0, validation_split=0.25, class_weight={0: 1.0, 1: 2.0})
    assert "val_loss" in history.history
    assert isinstance(model.evaluate(batches, verbose=0), list)


def test_fit_prints_a_line_for_an_epoch(capsys):
    compiled().fit(X, LABELS, epochs=2, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1/2", "2/2"]


def test_errors_of_fit():
    with pytest.raises(ValueError, match="compile"):
        classifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="one length"):
        compiled().fit(X, LABELS[:3], verbose=0)
    with pytest.raises(ValueError, match="one length"):
        compiled().fit(X[:0], LABELS[:0], verbose=0)
    with pytest.raises(ValueError):
        classifier().compile("nonsense")
    with pytest.raises(ValueError):
        compiled().fit(X, LABELS, verbose=0, validation_split=1.0)


def test_own_train_step():
    class Own(keras.Sequential):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True)[:, 0] - tf.cast(y, tf.float32)) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    model = Own([layers.Dense(1)])
    model.compile("sgd")
    history = model.fit(X, LABELS, epochs=5, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_callbacks():
    model = compiled()
    seen = []
    stop = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=2)
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch))
    model.fit(X, LABELS, epochs=10, verbose=0, callbacks=[stop, note])
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_weight_files(tmp_path, ending):
    path = tmp_path / f"weights.{ending}"
    first, second = classifier(), classifier()
    first(X)
    first.save_weights(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    second(X)
    second.layers[0].kernel.assign(tf.zeros((4, 8)))
    second.load_weights(path)
    np.testing.assert_array_equal(first(X), second(X))
    with pytest.raises(FileExistsError):
        first.save_weights(path, overwrite=False)
    other = keras.Sequential([layers.Dense(3)])
    other(X)
    with pytest.raises(ValueError, match="does not fit"):
        other.load_weights(path)


def test_weight_file_errors(tmp_path):
    with pytest.raises(ValueError, match="npz"):
        classifier().save_weights(tmp_path / "w.pickle")
    with pytest.raises(ValueError, match="no weights"):
        classifier().save_weights(tmp_path / "w.npz")


def test_summary(capsys):
    model = classifier()
    model(X)
    model.summary()
    text = capsys.readouterr().out
    assert "Total params: 58" in text and "(4, 8), (8,)" in text


def test_regularizers_enter_the_loss():
    model = keras.Sequential([layers.Dense(1, kernel_regularizer=keras.regularizers.L2(1.0),
                                           kernel_initializer="ones")])
    model.compile("sgd", "mse")
    zeros = np.zeros((4, 4), np.float32)
    assert model.evaluate(zeros, zeros[:, :1], verbose=0) == pytest.approx(4.0)


def test_the_functional_api_says_what_to_write_instead() -> None:
    inputs = tf.keras.Input((4,))
    with pytest.raises(ValueError, match=r"no functional API.*subclass of keras\.Model"):
        tf.keras.layers.Dense(3)(inputs)
    with pytest.raises(ValueError, match="no functional API"):
        tf.keras.layers.Concatenate()([inputs, inputs])


@pytest.mark.parametrize("loss", ["mse", lambda y, p: tf.reduce_mean(tf.square(y - p), axis=-1)])
@pytest.mark.parametrize("weights", [None, np.array([0.0, 1.0, 2.0, 3.0])])
def test_a_loss_function_means_what_the_loss_object_means(loss, weights) -> None:
    x = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    y = np.array([1, 0, 1, 1])
    found = []
    for given in (loss, tf.keras.losses.MeanSquaredError()):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", given)
        model.fit(x, y, sample_weight=weights, shuffle=False, verbose=0)
        found.append((model.compute_loss(x, y, model(x), weights).numpy(), model.get_weights()[0]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


def test_weights_of_examples_need_one_output() -> None:
    class Two(tf.keras.Model):
        def call(self, x):
            return x, 2.0 * x

    model = Two()
    model.compile("sgd", lambda y, p: tf.reduce_mean(p[0] + p[1] - y))
    with pytest.raises(ValueError, match="one output"):
        model.evaluate(np.ones((4, 1), np.float32), np.ones((4, 1), np.float32),
                       sample_weight=np.ones(4), verbose=0)


def test_an_absent_callback_says_what_to_write_instead() -> None:
    with pytest.raises(AttributeError, match=r"no 'TensorBoard'.*subclass of Callback"):
        _ = keras.callbacks.TensorBoard

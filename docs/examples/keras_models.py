"""Keras on gtape: a functional model, fit with callbacks, a train_step, a saved file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import gtape as tf

keras = tf.keras


def make_data(samples: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Points of the plane, each with a colour, and whether they are in the ring of that colour."""
    rng = np.random.default_rng(0)
    point = rng.uniform(-1, 1, (samples, 2)).astype(np.float32)
    colour = rng.integers(0, 3, (samples, 1))
    radius = np.linalg.norm(point, axis=1, keepdims=True)
    inside = np.floor(3 * radius) == colour
    return {"point": point, "colour": colour}, inside.astype(np.float32)


def layers_of(point: Any, colour: Any) -> Any:
    """The chance of being inside."""
    embedded = keras.layers.Flatten()(keras.layers.Embedding(3, 4)(colour))
    x = keras.layers.Concatenate()([point, embedded])
    for _ in range(2):
        x = keras.layers.Dense(48, activation="relu")(x)
    return keras.layers.Dense(1, activation="sigmoid")(x)


class NoisyModel(keras.Model):
    """Trains on inputs that are shaken a little: a step of one's own, compiled as fit's is."""

    def train_step(self, data: Any) -> dict[str, Any]:
        inputs, targets = data
        noise = tf.random.normal(tf.shape(inputs["point"]), stddev=0.005)
        with tf.GradientTape() as tape:
            predicted = self({**inputs, "point": inputs["point"] + noise}, training=True)
            loss = self.compute_loss(y=targets, y_pred=predicted)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.compute_metrics(inputs, targets, predicted)


def fitted(inputs: dict[str, np.ndarray], targets: np.ndarray) -> NoisyModel:
    point = keras.Input((2,), name="point")
    colour = keras.Input((1,), dtype="int32", name="colour")
    model = NoisyModel({"point": point, "colour": colour}, layers_of(point, colour))
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy",
                  metrics=["accuracy"])
    best = keras.callbacks.EarlyStopping("val_loss", patience=15, restore_best_weights=True)
    history = model.fit(inputs, targets, batch_size=100, epochs=40, validation_split=0.2,
                        callbacks=[best], verbose=0)
    print(f"{len(history.epoch)} epochs, validation loss {history.history['val_loss'][0]:.3f} -> "
          f"{min(history.history['val_loss']):.3f}")
    return model


def saved_and_loaded(model: NoisyModel, inputs: dict[str, np.ndarray]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "rings.keras")
        model.save(path)
        again = keras.models.load_model(path, custom_objects={"NoisyModel": NoisyModel})
    expected = model.predict(inputs, verbose=0)
    np.testing.assert_array_equal(again.predict(inputs, verbose=0), expected)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    tf.random.set_seed(0)
    inputs, targets = make_data(2500)
    train = ({name: values[:2000] for name, values in inputs.items()}, targets[:2000])
    test = ({name: values[2000:] for name, values in inputs.items()}, targets[2000:])
    model = fitted(*train)
    _, accuracy = model.evaluate(*test, verbose=0)
    print(f"right on new points: {accuracy:.1%}")
    assert accuracy > 0.9
    saved_and_loaded(model, test[0])

"""What `adapt` taught Keras' layers is in checkpoints: words, their weights, limits of bins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.train import stored

layers = tf.keras.layers
Checkpoint = tf.train.Checkpoint
_TEXTS = ["a b a ü", "b c", "c a b"]


def _lookup() -> Any:
    return layers.StringLookup(output_mode="multi_hot")


@pytest.mark.parametrize("made, data", [
    (lambda: layers.StringLookup(), ["q", "r", "q", "ü"]),
    (lambda: layers.StringLookup(num_oov_indices=0, mask_token=""), ["q", "r"]),
    (lambda: layers.StringLookup(invert=True), ["q", "r"]),
    (_lookup, [["q", "r"], ["s", "q"]]),
    (lambda: layers.IntegerLookup(), [4, 4, 9]),
    (lambda: layers.IntegerLookup(mask_token=0, num_oov_indices=2), [4, 4, 9]),
    (lambda: layers.TextVectorization(), _TEXTS),
    (lambda: layers.TextVectorization(output_mode="tf_idf"), _TEXTS),
    (lambda: layers.TextVectorization(output_mode="tf_idf", max_tokens=9, pad_to_max_tokens=True),
     _TEXTS),
    (lambda: layers.Discretization(num_bins=3), [1.0, 2.5, 2.0, 7.0, 4.0]),
])
def test_an_adapted_layer_is_saved_and_restored(made: Any, data: Any, tmp_path: Path) -> None:
    adapted, fresh = made(), made()
    adapted.adapt(np.array(data))
    path = Checkpoint(layer=adapted).write(tmp_path / "x")
    Checkpoint(layer=fresh).restore(path).assert_consumed()
    x = tf.constant([[0], [1]] if getattr(adapted, "invert", False) else data)
    assert fresh(x).numpy().tolist() == adapted(x).numpy().tolist()


def _model(words: list[str] | None) -> Any:
    return tf.keras.Sequential([tf.keras.Input((1,), dtype="string"),
                                layers.StringLookup(vocabulary=words), layers.Embedding(5, 2)])


def test_a_model_predicts_with_the_words_that_it_was_given_back(tmp_path: Path) -> None:
    model, other = _model(["x", "y", "z"]), _model(["z", "w"])
    x = tf.constant([["x"], ["z"], ["w"]])
    other.predict(x, verbose=0)
    Checkpoint(model=other).restore(Checkpoint(model=model).write(tmp_path / "x")).assert_consumed()
    assert other.layers[0].get_vocabulary() == model.layers[0].get_vocabulary()
    np.testing.assert_array_equal(other.predict(x, verbose=0), model.predict(x, verbose=0))


def test_a_layer_that_was_not_adapted_is_so_again(tmp_path: Path) -> None:
    path = Checkpoint(layer=layers.StringLookup()).write(tmp_path / "x")
    other = layers.StringLookup(vocabulary=["x"])
    Checkpoint(layer=other).restore(path)
    assert other.get_vocabulary() == ["[UNK]"]
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
        other(tf.constant(["x"]))


@pytest.mark.parametrize("text", ['["/etc/passwd", null]', '[["x", "x"], null]', "7", "[[], null]",
                                  '[["x", "y", "z", "u"], null]', '[["x"], [1.0]]'])
def test_words_that_do_not_fit_leave_the_layer_as_it_was(text: str, tmp_path: Path) -> None:
    layer = _lookup()
    layer.set_vocabulary(["u", "v"])
    path = Path(Checkpoint(layer=layer).write(tmp_path / "x"))
    bad = stored.read(path)
    bad.states["layer/vocabulary"] = text
    stored.write(bad, path)
    with pytest.raises(tf.errors.DataLossError, match="nothing was restored"):
        Checkpoint(layer=layer).restore(path)
    assert layer(tf.constant([["v", "x"]])).numpy().tolist() == [[1, 0, 1]]

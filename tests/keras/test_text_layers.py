"""Keras' layers for text and categories: eager, in traced functions, in models that are saved."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf

layers = tf.keras.layers
_TEXTS = [["The cat sat."], ["a dog, a cat"], [""]]
_WORDS = ["cat", "dog", "sat"]


def _quiet(function: Any, *args: Any) -> Any:
    """The result of a call that runs as a traced function."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", tf.errors.EagerFunctionWarning)
        return function(*args)


@pytest.mark.parametrize("options", [
    {"output_sequence_length": 3}, {"output_mode": "multi_hot"}, {"output_mode": "count"},
    {"output_mode": "tf_idf", "idf_weights": [0.5, 1.0, 2.0]},
    {"output_sequence_length": 4, "ngrams": 2}, {"output_sequence_length": 5, "split": "character"},
    {"output_sequence_length": 2, "split": None, "standardize": "lower"}])
def test_text_vectorization_is_a_step_of_traced_functions(options: dict[str, Any]) -> None:
    layer = layers.TextVectorization(vocabulary=_WORDS, **options)
    traced = tf.function(lambda x: layer(x), reduce_retracing=True)
    for texts in (_TEXTS, _TEXTS[:1], _TEXTS[1:]):
        x = tf.constant(texts)
        found, wanted = _quiet(traced, x), layer(x)
        assert found.dtype is wanted.dtype and found.numpy().tolist() == wanted.numpy().tolist()


def test_text_vectorization_of_any_length_runs_eagerly() -> None:
    layer = layers.TextVectorization(vocabulary=_WORDS)
    with pytest.warns(tf.errors.EagerFunctionWarning, match="tf.strings.split gives depends on"):
        found = tf.function(lambda x: layer(x))(tf.constant(_TEXTS))
    assert found.numpy().tolist() == [[1, 2, 4, 0], [1, 3, 1, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize("make, given, wanted", [
    (lambda: layers.StringLookup(vocabulary=_WORDS), [["dog"], ["x"]], [[2], [0]]),
    (lambda: layers.StringLookup(vocabulary=_WORDS, invert=True), [[1], [0]],
     [[b"cat"], [b"[UNK]"]]),
    (lambda: layers.StringLookup(vocabulary=_WORDS, num_oov_indices=2), [["x"], ["y"], ["dog"]],
     [[0], [1], [3]]),
    (lambda: layers.IntegerLookup(vocabulary=[7, 9], num_oov_indices=3), [7, 1, 2, 3],
     [3, 1, 2, 0]),
    (lambda: layers.Hashing(3), [["A"], ["B"], ["C"], ["D"], ["E"]], [[1], [0], [1], [1], [2]]),
    (lambda: layers.Hashing(3, salt=[133, 137]), [["A"], ["B"], ["C"], ["D"], ["E"]],
     [[1], [2], [1], [0], [2]])])
def test_layers_of_categories(make: Any, given: Any, wanted: Any) -> None:
    layer, x = make(), tf.constant(given)
    assert layer(x).numpy().tolist() == wanted
    assert _quiet(tf.function(lambda x: layer(x)), x).numpy().tolist() == wanted


def test_a_hashed_crossing_in_a_traced_function() -> None:
    layer = layers.HashedCrossing(num_bins=5)
    x = tf.constant(["A", "B", "A", "B", "A"]), tf.constant([101, 101, 101, 102, 102])
    assert layer(x).numpy().tolist() == [1, 4, 1, 1, 3]
    found = _quiet(tf.function(lambda a, b: layer((a, b))), *x)
    assert found.numpy().tolist() == [1, 4, 1, 1, 3]


def test_a_vocabulary_is_learnt_from_a_dataset() -> None:
    data = tf.data.Dataset.from_tensor_slices(["b a", "b c b"]).batch(1)
    layer = layers.TextVectorization(output_sequence_length=3)
    layer.adapt(data)
    assert [str(w) for w in layer.get_vocabulary()] == ["", "[UNK]", "b", "c", "a"]
    assert [x.numpy().tolist() for x in data.map(layer)] == [[[2, 4, 0]], [[2, 3, 2]]]


def test_a_model_of_texts_trains_and_is_saved(tmp_path: Path) -> None:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([
        tf.keras.Input((1,), dtype="string"),
        layers.TextVectorization(vocabulary=_WORDS, output_sequence_length=3),
        layers.Embedding(5, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    x, y = tf.constant(_TEXTS * 4), np.arange(12.0)[:, None]
    losses = _quiet(lambda: model.fit(x, y, epochs=3, verbose=0, batch_size=4).history["loss"])
    assert losses[-1] < losses[0]
    path = tmp_path / "texts.keras"
    model.save(path)
    again = tf.keras.models.load_model(path)
    assert np.array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


@pytest.mark.gpu
@pytest.mark.parametrize("make, given, wanted", [
    (lambda: layers.StringLookup(vocabulary=_WORDS, num_oov_indices=2, mask_token=""),
     ["dog", "", "x"], [4, 0, 1]),
    (lambda: layers.StringLookup(vocabulary=_WORDS, invert=True), [1, 0], [b"cat", b"[UNK]"]),
    (lambda: layers.IntegerLookup(vocabulary=[7, 9], num_oov_indices=3), [7, 1, 2], [3, 1, 2]),
    (lambda: layers.IntegerLookup(vocabulary=[7, 9], output_mode="count"), [7, 7], [0, 2, 0]),
    (lambda: layers.TextVectorization(vocabulary=_WORDS), ["a cat", "dog"], [[1, 2], [3, 0]]),
])
def test_words_are_looked_up_on_the_host_for_a_gpu(make: Any, given: Any, wanted: Any) -> None:
    with tf.device("GPU:0"):
        layer, x = make(), tf.constant(given)
        for found in (layer(x), tf.function(layer)(x) if x.dtype != tf.string else layer(x)):
            assert found.numpy().tolist() == wanted
            assert found.device == ("CPU:0" if found.dtype == tf.string else "GPU:0")
    assert layer(tf.constant(given, x.dtype)).numpy().tolist() == wanted


@pytest.mark.gpu
def test_adapted_words_and_their_weights_serve_a_gpu() -> None:
    with tf.device("GPU:0"):
        layer = layers.TextVectorization(output_mode="tf_idf")
        layer.adapt(tf.constant(["a b", "b c"]))
        found = layer(tf.constant(["a b"]))
    np.testing.assert_allclose(found.numpy(), [[0, np.log(5 / 3), 0, np.log(2)]], rtol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("eager", [False, True])
def test_a_model_of_texts_trains_on_a_gpu(eager: bool) -> None:
    with tf.device("GPU:0"):
        model = tf.keras.Sequential([
            layers.TextVectorization(vocabulary=_WORDS, output_sequence_length=3),
            layers.Embedding(5, 2), layers.Flatten(), layers.Dense(1)])
        model.compile("sgd", "mse", run_eagerly=eager)
        model.fit(tf.constant(_TEXTS), np.ones((3, 1)), verbose=0)
        assert model.predict(tf.constant(_TEXTS), verbose=0).shape == (3, 1)
        assert model.weights[0].value.device == "GPU:0"


def test_the_base_of_lookup_layers_is_made_by_its_own_arguments() -> None:
    from keras.src.layers.preprocessing.index_lookup import IndexLookup

    layer = IndexLookup(max_tokens=None, num_oov_indices=1, mask_token="", oov_token="[UNK]",
                        vocabulary_dtype="string", vocabulary=["a", "b"])
    assert layer(tf.constant(["b", "c", "a"])).numpy().tolist() == [3, 1, 2]

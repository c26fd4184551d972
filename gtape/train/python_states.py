"""State that is no tensor, as texts: the positions of random streams, so that a resumed program
draws the same numbers, and what Keras' layers learn by `adapt` and keep beside their variables.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gtape.ops.random.streams import streams
from gtape.train.experimental import PythonState


class RandomStreams(PythonState):
    """The streams that `tf.random.normal`, `tf.nn.dropout` and the like draw from.
    `tf.train.Checkpoint(model=model, random=tf.train.RandomStreams())` keeps the global seed and
    how far each stream has got. All objects of this class mean the same streams."""

    def serialize(self) -> str:
        """The seed and the position of every stream that was drawn from."""
        return json.dumps(streams.kept())

    def deserialize(self, string_value: str) -> None:
        """Go on where the streams were. Raises ValueError, KeyError, TypeError: the text is no
        state of streams."""
        streams.restore(json.loads(string_value))


class NumPyState(PythonState):
    """The position of a `numpy.random.Generator`."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def serialize(self) -> str:
        return json.dumps(_plain(self._generator.bit_generator.state))

    def deserialize(self, string_value: str) -> None:
        self._generator.bit_generator.state = _arrays(json.loads(string_value))


def _plain(state: object) -> Any:
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    # JSON has no arrays, and the Mersenne Twister's state is one.
    if isinstance(state, np.ndarray):
        return {"array": state.tolist(), "dtype": state.dtype.name}
    return int(state) if isinstance(state, np.integer) else state


def _arrays(state: object) -> Any:
    if not isinstance(state, dict):
        return state
    if state.keys() == {"array", "dtype"}:
        return np.array(state["array"], state["dtype"])
    return {key: _arrays(value) for key, value in state.items()}


class Vocabulary(PythonState):
    """The words of a lookup layer in their order, and their weights where it has some. A layer that
    was not adapted yet has none. Functions that were traced with the layer's table see the words
    that it is given here."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def serialize(self) -> str:
        """The words, those that stand for others included."""
        layer = self._layer
        if not int(layer.lookup_table.size()):
            return json.dumps(None)
        words = [word if isinstance(word, str) else int(word) for word in layer.get_vocabulary()]
        weights = None
        if layer.output_mode == "tf_idf":
            weights = layer.idf_weights_const.numpy()[:len(words)].tolist()
        return json.dumps([words, weights])

    def deserialize(self, string_value: str) -> None:
        """Give the layer these words. Raises ValueError, TypeError: the text is no vocabulary, or
        not one of this layer. RuntimeError: the number of words cannot change any more."""
        # A model in use may not change its number of words; the same words are no change.
        if string_value == self.serialize():
            return
        layer, content = self._layer, json.loads(string_value)
        table = layer.lookup_table
        if content is None:
            table._empty()
            # Keras notes here that the number of words is fixed.
            layer._frozen_vocab_size = None
            return
        words, weights = content
        # A text would be the path of a file.
        if not isinstance(words, list):
            raise ValueError(f"a vocabulary must be a list; got {words!r}")
        # Keras makes a new table of the words. Traced functions hold the one that was there, so
        # that it stays, and becomes what the new one is.
        try:
            layer.set_vocabulary(words, weights)
        finally:
            filled, layer.lookup_table = layer.lookup_table, table
        table._become(filled)


class Boundaries(PythonState):
    """The limits between the bins of a Discretization layer; None before it is adapted."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def serialize(self) -> str:
        """The limits as numbers."""
        limits = self._layer.bin_boundaries
        return json.dumps(None if limits is None else [float(limit) for limit in limits])

    def deserialize(self, string_value: str) -> None:
        """Give the layer these limits. Raises ValueError, TypeError: the text is no list of
        numbers."""
        limits = json.loads(string_value)
        self._layer.bin_boundaries = None if limits is None else [float(limit) for limit in limits]

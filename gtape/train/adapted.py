"""What Keras' layers learn by `adapt` and keep beside their variables, as texts."""

from __future__ import annotations

import json
from typing import Any

from gtape.train.experimental import PythonState


class Vocabulary(PythonState):
    """The words of a lookup layer in their order, and their weights where it has some.

    A layer that was not adapted yet has none. Functions that were traced with the layer's table
    see the words that it is given here.
    """

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
        """Give the layer these words.

        Raises:
            ValueError, TypeError: the text is no vocabulary, or not one of this layer.
            RuntimeError: the number of words cannot change any more.
        """
        if string_value == self.serialize():
            return
        layer, found = self._layer, json.loads(string_value)
        table = layer.lookup_table
        if found is None:
            table._empty()
            layer._frozen_vocab_size = None
            return
        words, weights = found
        # A text would be the path of a file.
        if not isinstance(words, list):
            raise ValueError(f"a vocabulary must be a list; got {words!r}")
        try:
            layer.set_vocabulary(words, weights)
        finally:
            made, layer.lookup_table = layer.lookup_table, table
        table._become(made)


class Boundaries(PythonState):
    """The limits between the bins of a Discretization layer; None before it is adapted."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def serialize(self) -> str:
        """The limits as numbers."""
        found = self._layer.bin_boundaries
        return json.dumps(None if found is None else [float(limit) for limit in found])

    def deserialize(self, string_value: str) -> None:
        """Give the layer these limits.

        Raises:
            ValueError, TypeError: the text is no list of numbers.
        """
        found = json.loads(string_value)
        self._layer.bin_boundaries = None if found is None else [float(limit) for limit in found]

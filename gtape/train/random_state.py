"""The positions of random streams as texts, so that a resumed program draws the same numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gtape.ops.random.streams import streams
from gtape.train.experimental import PythonState


class RandomStreams(PythonState):
    """The streams that `tf.random.normal`, `tf.nn.dropout` and the like draw from.

    `tf.train.Checkpoint(model=model, random=tf.train.RandomStreams())` keeps the global seed and
    how far each stream has got. All objects of this class mean the same streams.
    """

    def serialize(self) -> str:
        """The seed and the position of every stream that was drawn from."""
        return json.dumps(streams.kept())

    def deserialize(self, string_value: str) -> None:
        """Go on where the streams were.

        Raises:
            ValueError, KeyError, TypeError: the text is no state of streams.
        """
        streams.restore(json.loads(string_value))


class NumPyState(PythonState):
    """The position of a `numpy.random.Generator`."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def serialize(self) -> str:
        return json.dumps(_plain(self._generator.bit_generator.state))

    def deserialize(self, string_value: str) -> None:
        self._generator.bit_generator.state = _arrays(json.loads(string_value))


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    if isinstance(state, np.ndarray):
        return {"array": state.tolist(), "dtype": state.dtype.name}
    return int(state) if isinstance(state, np.integer) else state


def _arrays(state: Any) -> Any:
    if not isinstance(state, dict):
        return state
    if state.keys() == {"array", "dtype"}:
        return np.array(state["array"], state["dtype"])
    return {key: _arrays(value) for key, value in state.items()}

"""Layers around layers: step by step, and in both directions."""

from __future__ import annotations

import copy
from typing import Any

from gtape.core.text import shown
from gtape.keras.layers.layer import Layer
from gtape.ops.layout import reshape


class TimeDistributed(Layer):
    """The same layer for every step of [batch, steps, ...]."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(layer, Layer):
            raise ValueError(f"TimeDistributed takes a layer; got {shown(layer)}")
        self.layer = layer

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 3:
            raise ValueError(f"TimeDistributed takes [batch, steps, ...]; got shape "
                             f"{tuple(input_shape)}")
        if not self.layer.built:
            self.layer.build((input_shape[0], *input_shape[2:]))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        shape = inputs.spec.shape
        flat = reshape(inputs, (shape[0] * shape[1], *shape[2:]))
        made = self.layer(flat, training=training) if training is not None else self.layer(flat)
        return reshape(made, (shape[0], shape[1], *made.shape[1:]))


class Bidirectional(Layer):
    """A recurrent layer forwards and a copy of it backwards.

    Args:
        merge_mode: 'concat', 'sum', 'mul', 'ave', or None for a pair.
        backward_layer: the layer that goes backwards, where it is another.

    Raises:
        ValueError: an unknown merge_mode, or no recurrent layer.
    """

    def __init__(self, layer: Any, merge_mode: str | None = "concat", weights: Any = None,
                 backward_layer: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if merge_mode not in ("concat", "sum", "mul", "ave", None):
            raise ValueError(f"merge_mode must be 'concat', 'sum', 'mul', 'ave' or None; got "
                             f"{shown(merge_mode)}")
        if not hasattr(layer, "return_sequences"):
            raise ValueError(f"Bidirectional takes a recurrent layer; got {shown(layer)}")
        self.merge_mode = merge_mode
        self.forward_layer = layer
        if backward_layer is None:
            backward_layer = _reversed_copy(layer)
        self.backward_layer = backward_layer
        self.forward_layer._name = f"forward_{layer.name.removeprefix('forward_')}"

    @property
    def return_sequences(self) -> bool:
        return self.forward_layer.return_sequences

    def build(self, input_shape: Any) -> None:
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(input_shape)

    def call(self, inputs: Any, initial_state: Any = None, mask: Any = None,
             training: Any = None) -> Any:
        half = 0 if initial_state is None else len(initial_state) // 2
        given = [None, None] if initial_state is None else [
            initial_state[:half], initial_state[half:]]
        results = [layer(inputs, initial_state=state, mask=mask, training=training)
                   for layer, state in zip((self.forward_layer, self.backward_layer), given)]
        states: list[Any] = []
        if self.forward_layer.return_state:
            states = [s for r in results for s in r[1:]]
            results = [r[0] for r in results]
        forward, backward = results
        if self.return_sequences:
            from gtape.ops.arranging import reverse

            backward = reverse(backward, [1])
        made = self._merged(forward, backward)
        return (made, *states) if states else made

    def _merged(self, a: Any, b: Any) -> Any:
        if self.merge_mode == "concat":
            from gtape.ops.packing import concat

            return concat([a, b], -1)
        if self.merge_mode is None:
            return a, b
        return {"sum": lambda: a + b, "mul": lambda: a * b,
                "ave": lambda: (a + b) / 2}[self.merge_mode]()


def _reversed_copy(layer: Any) -> Any:
    """A layer like this one with initial values of its own, going the other way."""
    if layer.built:
        raise ValueError("Bidirectional: the layer is built already; pass a new one")
    made = copy.deepcopy(layer)
    made._name = f"backward_{layer.name}"
    made.go_backwards = not layer.go_backwards
    if hasattr(made.cell, "initializers"):
        made.cell.initializers = tuple(
            i.clone() if hasattr(i, "clone") else i for i in made.cell.initializers)
    return made

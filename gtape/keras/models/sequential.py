"""Sequential: layers one after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gtape.core.state import paused
from gtape.core.text import shown
from gtape.keras.layers.layer import Layer
from gtape.keras.models.model import Model


class Sequential(Model):
    """A model whose layers are called one after another.

    It is built by its first call, or at once when its first entry is `keras.Input(shape)` or a
    layer with `input_shape`.

    Raises:
        ValueError: an entry is neither a layer nor a function.
    """

    def __init__(self, layers: Iterable[Any] | None = None, trainable: bool = True,
                 name: str | None = None) -> None:
        super().__init__(trainable=trainable, name=name)
        self._chain: tuple[Any, ...] = ()
        self._plain = True
        for layer in layers or ():
            self._append(layer)
        self._build_if_known()

    def add(self, layer: Any, rebuild: bool = True) -> None:
        """Put a layer at the end."""
        self._append(layer)
        self.built = False
        self._build_if_known()

    def pop(self, rebuild: bool = True) -> Any:
        """Take the last layer away, and give it."""
        *kept, last = self._chain
        self._chain = tuple(kept)
        return last

    def _append(self, layer: Any) -> None:
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise ValueError(f"Sequential takes layers; got {shown(layer)}")
            from gtape.keras.layers.functions import Lambda

            layer = Lambda(layer)
        if any(layer is known for known in self._chain) or any(
                layer.name == known.name for known in self._chain):
            raise ValueError(f"the layers of a model need different names; '{layer.name}' is "
                             f"there already")
        self._chain = (*self._chain, layer)
        self._plain = self._plain and type(layer).compute_mask is Layer.compute_mask

    @property
    def layers(self) -> list[Any]:
        from gtape.keras.layers.input_layer import InputLayer

        return [layer for layer in self._chain if not isinstance(layer, InputLayer)]

    def _known_shape(self) -> tuple[Any, ...] | None:
        first = self._chain[0] if self._chain else None
        shape = getattr(first, "batch_shape", None)
        if shape is None and first is not None and first._given_shape is not None:
            shape = (None, *first._given_shape)
        return shape

    def _build_if_known(self) -> None:
        shape = self._known_shape()
        if shape is not None and all(n is not None for n in shape[1:]):
            self.build(shape)

    def build(self, input_shape: Any = None) -> None:
        """Make the weights of all layers for inputs of this shape, whose batch may be None.

        Raises:
            ValueError: lengths other than the batch are unknown.
        """
        if input_shape is None or any(n is None for n in input_shape[1:]):
            raise ValueError(f"Sequential.build needs the shape of the input; got {input_shape}")
        from gtape.core.dtypes import int32
        from gtape.keras.layers.embedding import Embedding
        from gtape.ops.creation import zeros

        first = next((c for c in self._chain if not hasattr(c, "batch_shape")), None)
        dtype = int32 if isinstance(first, Embedding) else self._dtype
        with paused():
            x: Any = zeros((input_shape[0] or 1, *input_shape[1:]), dtype)
            for layer in self._chain:
                x = layer(x)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if not self._plain or mask is not None:
            return self._masked_call(inputs, mask)
        for layer in self._chain:
            inputs = layer(inputs)
        return inputs

    def _masked_call(self, x: Any, mask: Any) -> Any:
        for layer in self._chain:
            given = x
            x = layer(x, mask=mask) if mask is not None and layer._signature.takes(
                "mask") else layer(x)
            mask = layer.compute_mask(given, mask)
        return x

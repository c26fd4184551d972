"""Input: the shape with which a Sequential model begins."""

from __future__ import annotations

from typing import Any

from gtape.keras.layers.layer import Layer


class InputLayer(Layer):
    """Gives its input on; a Sequential model that begins with it is built at once.

    Args:
        shape: the shape of one example.
        batch_size: the number of examples, where it is fixed.
        batch_shape: both in one.

    Raises:
        ValueError: neither shape nor batch_shape, or both.
    """

    def __init__(self, shape: Any = None, batch_size: int | None = None, dtype: Any = None,
                 batch_shape: Any = None, name: str | None = None, **kwargs: Any) -> None:
        for unused in ("sparse", "ragged", "optional", "input_tensor"):
            if kwargs.pop(unused, None):
                raise ValueError(f"Input: gtape has no {unused} inputs")
        super().__init__(name=name, **kwargs)
        if (shape is None) == (batch_shape is None):
            raise ValueError("Input takes the shape of one example, such as Input((28, 28)), or "
                             "batch_shape")
        if batch_shape is None:
            size = (shape,) if isinstance(shape, int) else tuple(shape)
            batch_shape = (batch_size, *size)
        self.batch_shape = tuple(batch_shape)
        self.built = True

    def call(self, inputs: Any) -> Any:
        return inputs


def Input(shape: Any = None, batch_size: int | None = None, dtype: Any = None,
          batch_shape: Any = None, name: str | None = None, **kwargs: Any) -> InputLayer:
    """An InputLayer: the first entry of a Sequential model.

    There is no functional API here: models with other graphs than a chain are subclasses of
    `keras.Model`.
    """
    return InputLayer(shape, batch_size, dtype, batch_shape, name, **kwargs)

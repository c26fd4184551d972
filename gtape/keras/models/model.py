"""Model: a layer that can be compiled, fitted, evaluated and saved."""

from __future__ import annotations

from typing import Any

from gtape.keras.layers.layer import Layer
from gtape.keras.models.training import Trainer


class Model(Trainer, Layer):
    """Base class of models: subclasses make layers in `__init__` and override `call(inputs)`.

    The weights are `trainable_variables`, so a training loop can be written with
    `tf.GradientTape`; `compile` and `fit` are such a loop. `train_step(data)` may be overridden.

    Raises:
        NotImplementedError: given inputs and outputs; there is no functional API.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise NotImplementedError(
                "Model(inputs, outputs): gtape has no functional API, since it computes at once. "
                "Write a subclass of keras.Model with a call method, or keras.Sequential")
        super().__init__(**kwargs)
        self._start_training_state()

    @property
    def layers(self) -> list[Any]:
        """The layers held directly."""
        return [leaf for leaf in self._held() if isinstance(leaf, Layer)]

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of a name, or at an index.

        Raises:
            ValueError: there is none, or both or neither were given.
        """
        if (name is None) == (index is None):
            raise ValueError("get_layer takes a name or an index")
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"the model has {len(layers)} layers; got index {index}")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"the model has no layer '{name}'; it has "
                         f"{', '.join(layer.name for layer in layers)}")

    def summary(self, line_length: int | None = None, positions: Any = None,
                print_fn: Any = None, expand_nested: bool = False, show_trainable: bool = False,
                layer_range: Any = None) -> None:
        """Print a table of the layers, the shapes of their weights and their numbers."""
        from gtape.keras.models.summary import summary_text

        (print_fn or print)(summary_text(self, expand_nested))

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write all weights to a file: '.npz' or '.safetensors'.

        A file that is there is replaced only when the new one is safely on the disk. It holds a
        checksum of every weight; other programs read it as any file of its kind, bfloat16 in .npz
        being uint16.

        Raises:
            ValueError: another ending, or a model without weights.
            FileExistsError: the file is there, and `overwrite` is False.
        """
        from gtape.keras.models.weight_files import save

        save(self, filepath, overwrite)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False) -> None:
        """Read the weights that `save_weights` wrote, or another program under the same names.

        All that fits is assigned, or nothing: an error leaves the weights as they were.

        Raises:
            ValueError: names, shapes or dtypes differ, unless `skip_mismatch`.
            DataLossError: the file is damaged or cut short.
            OSError: it is missing, or cannot be read.
        """
        from gtape.keras.models.weight_files import load

        load(self, filepath, skip_mismatch)

"""Embedding: rows of a table, looked up by number."""

from __future__ import annotations

from typing import Any

from gtape.keras import constraints, initializers, regularizers
from gtape.keras.layers.arguments import positive
from gtape.keras.layers.layer import Layer


class Embedding(Layer):
    """Integers [...] to vectors [..., output_dim]; the gradient for the table is an IndexedSlices.

    Args:
        input_dim: the number of rows; inputs lie in [0, input_dim).
        output_dim: the length of a row.
        mask_zero: number 0 means "nothing here": `compute_mask` says where.
    """

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform",
                 embeddings_regularizer: Any = None, embeddings_constraint: Any = None,
                 mask_zero: bool = False, weights: Any = None, **kwargs: Any) -> None:
        kwargs.pop("input_length", None)
        super().__init__(**kwargs)
        self.input_dim = positive("input_dim", input_dim)
        self.output_dim = positive("output_dim", output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        self.mask_zero = bool(mask_zero)
        self._given_weights = weights

    def build(self, input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim), self.embeddings_initializer, name="embeddings",
            regularizer=self.embeddings_regularizer, constraint=self.embeddings_constraint)
        if self._given_weights is not None:
            self.set_weights(self._given_weights)

    def call(self, inputs: Any) -> Any:
        from gtape.core.dtypes import int32
        from gtape.ops.casting import cast
        from gtape.ops.gathering import gather

        rows = inputs if inputs.dtype.is_integer else cast(inputs, int32)
        return gather(self.embeddings, rows)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        from gtape.ops.scalars import not_equal

        return not_equal(inputs, 0) if self.mask_zero else None

"""The batching rules of all primitives, by subject; see `kinds.batching`."""

from gtape.ops import (
    batch_axes,
    batch_indexing,
    batch_layout,
    batch_products,
    batch_steps,
    batch_windows,
)

__all__ = ["batch_axes", "batch_indexing", "batch_layout", "batch_products", "batch_steps",
           "batch_windows"]

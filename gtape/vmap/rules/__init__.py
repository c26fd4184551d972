"""The batching rules of all primitives, by subject; see `vmap.batch_trace`."""

from gtape.vmap.rules import axes, indexing, layout, products, windows

__all__ = ["axes", "custom_gradient", "indexing", "layout", "products", "windows"]

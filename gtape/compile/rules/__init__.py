"""How primitives are made of the compiler's nodes, by subject."""

from gtape.compile.rules import arrangement, indexing, products, reductions, rows, windows

__all__ = ["arrangement", "indexing", "products", "reductions", "rows", "windows"]

"""How primitives are made of the compiler's nodes, by subject."""

from gtape.compile.rules import arrangement, indexing, products, random, reductions, rows, windows

__all__ = ["arrangement", "indexing", "products", "random", "reductions", "rows", "windows"]

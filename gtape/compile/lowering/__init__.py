"""How primitives are made of the compiler's nodes, by subject."""

from gtape.compile.lowering import (
           arrangement,
           indexing,
           integers,
           moves,
           products,
           random,
           reductions,
           rows,
           scans,
           segments,
           shares,
           updates,
           windows,
)

__all__ = ["arrangement", "indexing", "integers", "moves", "products", "random", "reductions",
           "rows", "scans", "segments", "shares", "updates", "windows"]

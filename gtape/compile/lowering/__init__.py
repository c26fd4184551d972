"""How primitives are made of the compiler's nodes, by subject."""

from gtape.compile.lowering import (
           arrangement,
           indexing,
           integers,
           moves,
           premises,
           products,
           random,
           reductions,
           scans,
           segments,
           updates,
           windows,
)

__all__ = ["arrangement", "indexing", "integers", "moves", "premises", "products", "random",
           "reductions", "scans", "segments", "updates", "windows"]

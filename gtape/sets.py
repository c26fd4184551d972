"""gtape.sets: what is in both, in one or in either of two sets."""

from gtape._lazy import attach as _attach

_TABLE = {"gtape.ops.sparse.combining": "difference intersection size union"}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)

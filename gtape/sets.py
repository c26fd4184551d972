"""gtape.sets: what is in both, in one or in either of two sets."""

from __future__ import annotations

from gtape.ops.sparse.sets import difference, intersection, size, union

__all__ = ["difference", "intersection", "size", "union"]

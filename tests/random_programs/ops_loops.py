"""Ops that take functions: maps, folds and scans over rows."""

from __future__ import annotations

from .ops import Draw, Operand, op

_BODIES = ("tf.tanh(row) * 2.0", "tf.reduce_sum(row) + row", "tf.where(row > 0.0, row, -row)",
           "row * row")


@op("float", weight=0.7)
def mapped(d: Draw, x: Operand) -> str | None:
    if not x.rank or not 0 < x.shape[0] < 20:
        return None
    name = d.choice(("tf.map_fn", "tf.vectorized_map"))
    return f"{name}(lambda row: {d.choice(_BODIES)}, {x})"


@op("float", weight=0.7)
def scanned(d: Draw, x: Operand) -> str | None:
    if not x.rank or not 0 < x.shape[0] < 12:
        return None
    name = d.choice(("tf.scan", "tf.foldl", "tf.foldr"))
    return f"{name}(lambda total, row: total * 0.5 + {d.choice(_BODIES)}, {x})"

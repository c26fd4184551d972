"""The table that `Model.summary` prints."""

from __future__ import annotations

import math
from typing import Any


def _count(variables: Any) -> int:
    return sum(math.prod(tuple(v.shape)) for v in variables)


def _rows(model: Any, nested: bool, indent: str = "") -> list[tuple[str, str, str]]:
    rows = []
    for layer in model.layers:
        shapes = ", ".join(str(tuple(v.shape)) for v in layer.weights) or "-"
        count = f"{_count(layer.weights):,}" if layer.built else "not built"
        rows.append((f"{indent}{layer.name} ({type(layer).__name__})", shapes, count))
        if nested and hasattr(layer, "layers"):
            rows += _rows(layer, nested, indent + "  ")
    return rows


def summary_text(model: Any, nested: bool = False) -> str:
    """The layers of a model, the shapes of their weights and their numbers."""
    rows = [("Layer (type)", "Weights", "Param #"), *_rows(model, nested)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    rule = "-" * len(lines[0])
    total, trained = _count(model.weights), _count(model.trainable_weights)
    return "\n".join([f'Model: "{model.name}"', rule, lines[0], rule, *lines[1:], rule,
                      f"Total params: {total:,}", f"Trainable params: {trained:,}",
                      f"Non-trainable params: {total - trained:,}"])

"""Models: layers with a training loop."""

from __future__ import annotations

from gtape.keras.models.model import Model
from gtape.keras.models.sequential import Sequential

__all__ = ["Model", "Sequential"]

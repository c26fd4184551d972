"""gtape.autodiff: reverse and forward differentiation."""

from __future__ import annotations

from gtape.core.forward import ForwardAccumulator
from gtape.core.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

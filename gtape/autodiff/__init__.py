"""gtape.autodiff: reverse and forward differentiation."""

from __future__ import annotations

from gtape.autodiff.forward_mode import ForwardAccumulator
from gtape.autodiff.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

"""`keras.backend`: the settings and resets that programs reach through this name."""

from __future__ import annotations

from gtape.keras.config import epsilon, floatx, set_epsilon, set_floatx
from gtape.keras.utils import clear_session

__all__ = ["clear_session", "epsilon", "floatx", "set_epsilon", "set_floatx"]

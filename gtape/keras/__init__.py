"""Keras itself, with gtape as its engine: the namespace that Keras ships as `tf.keras`.

    import gtape.keras as keras
    from gtape.keras.layers import Dense

Importing it imports Keras, which has one engine a process.
"""

from __future__ import annotations

import sys
from types import ModuleType

from gtape.engine import binding


def _named(name: str, module: ModuleType) -> None:
    """Let `import name` give this module, and so on for the modules in it."""
    sys.modules[name] = module
    # Not vars(module), which would load what is loaded when something in it is asked for.
    for part, value in object.__getattribute__(module, "__dict__").items():
        if isinstance(value, ModuleType):
            _named(f"{name}.{part}", value)


_named(__name__, binding.keras())

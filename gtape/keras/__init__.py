"""Keras itself, with gtape as its engine: the namespace that Keras ships as `tf.keras`.

    import gtape.keras as keras
    from gtape.keras.layers import Dense

Importing it imports Keras, which has one engine a process.
"""

from __future__ import annotations

import sys

from gtape.engine import alias, binding

alias.install(__name__, binding.keras())
sys.modules[__name__] = binding.keras()

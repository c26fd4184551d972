"""gtape: GradientTape for CuPy and NumPy.

    import gtape as tf

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
    tape.gradient(y, x)        # 6.0

Names, arguments and defaults are TensorFlow's. `tape.explain(target, source)` says why a gradient
is None.
"""

from __future__ import annotations

from typing import Any

from gtape import _names
from gtape.core import placement as _placement
from gtape.core.tape import GradientTape, UnconnectedGradients
from gtape.core.tensor import Tensor
from gtape.core.variable import Variable
from gtape.ops import indexing as _indexing
from gtape.ops import operators as _operators
from gtape.ops.creation import constant, convert_to_tensor

__version__ = "0.1.0"
newaxis = None

_installed = (_indexing, _operators)


def _probe() -> Any:
    from gtape.devices.probe import default_device

    return default_device()


_placement.find_default.append(_probe)


def __getattr__(name: str) -> Any:
    import importlib

    if name in _names.MODULES:
        return importlib.import_module(f"gtape.{name}")
    entry = _names.ROOT.get(name)
    if entry is None:
        raise AttributeError(_advice(name))
    found = getattr(importlib.import_module(entry[0]), entry[1])
    globals()[name] = found
    return found


def _advice(name: str) -> str:
    if name in _names.ABSENT:
        return f"gtape has no '{name}': {_names.ABSENT[name]}"
    import difflib

    near = difflib.get_close_matches(name, [*_names.ROOT, *_names.MODULES], 3)
    return f"gtape has no '{name}'" + (f"; did you mean {', '.join(near)}?" if near else "")


def __dir__() -> list[str]:
    return sorted({*globals(), *_names.ROOT, *_names.MODULES})


__all__ = ["GradientTape", "Tensor", "UnconnectedGradients", "Variable", "constant",
           "convert_to_tensor"]

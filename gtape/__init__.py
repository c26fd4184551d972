"""gtape: GradientTape for CuPy and NumPy.

    import gtape as tf

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x**2
    tape.gradient(y, x)        # 6.0

Names, arguments and defaults are TensorFlow's. `tape.explain(target, source)` says why a gradient
is None. Names are looked up when they are first used, so importing gtape costs next to nothing;
`gtape/__init__.pyi` lists them for editors and type checkers.
"""

from __future__ import annotations

from gtape import _names
from gtape._version import version as __version__

newaxis = None


def __getattr__(name: str) -> object:
    import importlib

    if name.startswith("_"):  # asked by tools, of every module: they need no advice, and no ops
        raise AttributeError(name)
    # All ops first: methods and operators of tensors are put in by them.
    importlib.import_module("gtape.ops")
    if name in _names.MODULES:
        return importlib.import_module(f"gtape.{name}")
    entry = _names.ROOT.get(name)
    if entry is None:
        raise AttributeError(_names.advice(name))
    found = getattr(importlib.import_module(entry[0]), entry[1])
    # Kept, so that __getattr__ is asked once for each name.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({"__version__", "newaxis", *_names.ROOT, *_names.MODULES})


__all__ = [*sorted(_names.ROOT), "newaxis", "__version__"]  # noqa: PLE0604

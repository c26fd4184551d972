"""gtape in TensorFlow's place for a whole process, for `python -m gtape run` and Keras' tests."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gtape.core.errors import EngineError
from gtape.engine import binding, namespace
from gtape.engine.alias import given


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.split(".")[0] != "tensorflow":
            return None
        return given(name, namespace.module(name))


def install() -> ModuleType:
    """Answer `import tensorflow` and `import keras` with gtape from now on.

    Raises:
        EngineError: TensorFlow is imported already.
    """
    found = sys.modules.get("tensorflow")
    if found is not None and found is not namespace.module("tensorflow"):
        raise EngineError("TensorFlow is imported already in this process; gtape can only stand in "
                          "for it in a process that has not imported it")
    if not any(isinstance(finder, type) and finder is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    binding.keras()
    return namespace.module("tensorflow")  # type: ignore[no-any-return]

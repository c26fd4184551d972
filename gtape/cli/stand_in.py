"""gtape in TensorFlow's place for a whole process, for `python -m gtape run` and Keras' tests."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from gtape.core.errors import EngineError
from gtape.engine import binding, namespace


class _TensorFlowFinder:
    """Finds `tensorflow` and what is in it, by which they are modules that are loaded already."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.split(".")[0] != "tensorflow":
            return None
        module = namespace.module(name)
        return ModuleSpec(name, _LoadedModule(module),  # type: ignore[arg-type]
                          is_package=hasattr(module, "__path__"))


class _LoadedModule:
    """Gives a module as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the finder's spec in its place.
        module.__spec__ = self._spec


_finder = _TensorFlowFinder()


def install() -> ModuleType:
    """Answer `import tensorflow` and `import keras` with gtape from now on. Raises EngineError:
    TensorFlow is imported already."""
    stand_in: ModuleType = namespace.module("tensorflow")
    if sys.modules.get("tensorflow", stand_in) is not stand_in:
        raise EngineError("TensorFlow is imported already in this process; gtape can only stand in "
                          "for it in a process that has not imported it")
    if _finder not in sys.meta_path:
        # Before all others, or an installed TensorFlow would be found.
        sys.meta_path.insert(0, _finder)
    binding.keras()
    return stand_in

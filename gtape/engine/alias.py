"""`gtape.keras.layers` and so on are Keras' own modules under a second name."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Alias:
    """Finds `name.x` as the module x of `package`."""

    def __init__(self, name: str, package: str) -> None:
        self._prefix = name + "."
        self._package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(self._prefix):
            return None
        real = f"{self._package}.{name.removeprefix(self._prefix)}"
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            return None
        return given(name, module)


class _Loader:
    """Gives a module that is loaded already, and leaves it as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def given(name: str, module: ModuleType) -> ModuleSpec:
    """A spec by which `import name` gives `module`."""
    return ModuleSpec(name, _Loader(module),  # type: ignore[arg-type]
                      is_package=hasattr(module, "__path__"))


def install(name: str, module: ModuleType) -> None:
    """Let `name` stand for the package `module`."""
    sys.meta_path.insert(0, _Alias(name, module.__name__))  # type: ignore[arg-type]

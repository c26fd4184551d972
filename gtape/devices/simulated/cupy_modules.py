"""CuPy's modules that simulated CUDA needs in another form, put in their places at import."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType

_AFTER = "cupy"


class Replacements(MetaPathFinder):
    """Finds `files` (a module's name -> its file) before the ones that are installed, and calls
    `after` once `cupy` itself is imported."""

    def __init__(self, files: dict[str, Path], after: Callable[[ModuleType], None]) -> None:
        self._files, self._after = files, after

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname in self._files:
            file = str(self._files[fullname])
            loader = None if file.endswith(".py") else ExtensionFileLoader(fullname, file)
            return importlib.util.spec_from_file_location(fullname, file, loader=loader)
        if fullname != _AFTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        # None: CuPy is not installed, as the import will say.
        if spec is not None and spec.loader is not None:
            spec.loader = _Followed(spec.loader, self._after)
        return spec


class _Followed(Loader):
    """A loader that calls a function when its module has been executed."""

    def __init__(self, loader: Loader, after: Callable[[ModuleType], None]) -> None:
        self._loader, self._after = loader, after

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._after(module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)  # what importlib.resources asks for


def install(files: dict[str, Path], after: Callable[[ModuleType], None]) -> None:
    # Before PathFinder, which finds the wheel's.
    sys.meta_path.insert(0, Replacements(files, after))

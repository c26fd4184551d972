"""Keras is imported with gtape in TensorFlow's place, in Keras' own modules and nowhere else.

Every module of the `keras` package is run with builtins of its own, whose `__import__` answers
`tensorflow` with `gtape.engine.namespace`. `sys.modules["tensorflow"]` is not touched: a real
TensorFlow, imported later, stays itself. docs/keras.md says why it is done so.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType, SimpleNamespace
from typing import Any

from gtape.core.errors import EngineError
from gtape.engine import amendments, namespace

#: From the first version of Keras that gtape is tested with to the first that it is not.
TESTED = ("3.15", "3.16")
#: Keras' modules that are run when something in them is first asked for: they import scikit-learn.
_WAITING = frozenset({"keras.wrappers", "keras._tf_keras.keras.wrappers"})
#: The one that imports pandas, to ask whether something is an instance of its classes.
_ASKS_FOR_PANDAS = "keras.src.trainers.data_adapters.array_slicing"
_lock = threading.RLock()
_bound: list[ModuleType] = []


def keras() -> ModuleType:
    """The namespace that Keras ships for TensorFlow, with gtape as its engine.

    Raises:
        EngineError: Keras is not installed, is of an untested version, or runs on another engine
            in this process.
    """
    with _lock:
        if not _bound:
            _bound.append(_import())
    return _bound[0]


def bound() -> ModuleType | None:
    """What `keras()` gives, if it was called before."""
    return _bound[0] if _bound else None


def _import() -> ModuleType:
    if "keras" in sys.modules:
        engine = getattr(sys.modules["keras"], "backend", None)
        raise EngineError(
            f"Keras has one engine a process, and is imported already with "
            f"{getattr(engine, 'backend', lambda: 'another engine')()} (importing TensorFlow does "
            f"that too). Touch gtape's tf.keras before anything imports keras or tensorflow, use a "
            f"process for each, or run the program by `python -m gtape run PROGRAM.py`")
    check_version()
    finder = _KerasFinder()
    sys.meta_path.insert(0, finder)
    # Keras reads it once, while it is imported; programs that start others keep their own.
    asked = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    try:
        return importlib.import_module("keras._tf_keras.keras")
    except BaseException:
        sys.meta_path.remove(finder)
        # Half imported modules would be found by the next attempt.
        for name in [n for n in sys.modules if n.split(".")[0] == "keras"]:
            del sys.modules[name]
        raise
    finally:
        del os.environ["KERAS_BACKEND"]
        if asked is not None:
            os.environ["KERAS_BACKEND"] = asked


def check_version() -> str:
    """The version of Keras that is installed.

    Raises:
        EngineError: there is none, or one that was not tested.
    """
    first, end = TESTED
    asked = f"'keras>={first},<{end}'"
    try:
        found = metadata.version("keras")
    except metadata.PackageNotFoundError:
        raise EngineError(f"tf.keras is the package keras, which is not installed: "
                          f"pip install {asked}") from None
    from packaging.version import Version  # one of Keras' own requirements

    if not Version(first) <= Version(found) < Version(end):
        raise EngineError(f"gtape is tested with keras {first} to before {end} as its tf.keras; "
                          f"this is {found}: pip install {asked}")
    return found


class _OfPandas(type):
    """A class of pandas by its name: nothing is an instance of it before pandas is imported."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, getattr(sys.modules.get("pandas"), cls.__name__, ()))


_PANDAS = SimpleNamespace(**{name: _OfPandas(name, (), {}) for name in ("DataFrame", "Series")})


def _import_for_keras(name: str, globals: Any = None, locals: Any = None,
                      fromlist: tuple[str, ...] | None = (), level: int = 0) -> Any:
    if level == 0 and name.startswith("tensorflow") and name.split(".")[0] == "tensorflow":
        return namespace.module(name if fromlist else "tensorflow")
    if name == "pandas" and globals and globals.get("__name__") == _ASKS_FOR_PANDAS:
        return _PANDAS
    return builtins.__import__(name, globals, locals, fromlist, level)


def _import_module(name: str, package: str | None = None) -> Any:
    if name.split(".")[0] == "tensorflow":
        return namespace.module(name)
    return importlib.import_module(name, package)


#: One for all of Keras' modules, as Python's own is.
_builtins = dict(vars(builtins), __import__=_import_for_keras)


class _KerasFinder:
    """Finds Keras' modules as Python does, and runs them with these builtins."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None,
                  ) -> ModuleSpec | None:
        if name.split(".")[0] != "keras":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = _KerasLoader(spec.loader)
            spec.loader = LazyLoader(loader) if name in _WAITING else loader
        return spec


class _KerasLoader:
    """A module's own loader, but for the builtins it runs with and what gtape amends in it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = _builtins
        self._loader.exec_module(module)
        if module.__name__ == "keras.src.utils.module_utils":
            # Its lazy modules are imported by this function and not by an import statement.
            module.importlib = SimpleNamespace(  # type: ignore[attr-defined]
                import_module=_import_module)
        amendments.apply(module)

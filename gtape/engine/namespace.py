"""The `tensorflow` that Keras' modules see: gtape, and the private names of TensorFlow in Keras."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import gtape
from gtape.engine.internal import NAMES

#: Paths of TensorFlow's modules that are asked for before anything in them; of the last, nothing is
#: asked on one device.
_SPACES = frozenset(path[:i] for path in (*NAMES, "experimental.dtensor.")
                    for i, c in enumerate(path) if c == ".")


class _Space(ModuleType):
    """A module of TensorFlow: its private names, and those of gtape's module of the same name."""

    def __init__(self, path: str, public: Any) -> None:
        super().__init__(f"tensorflow{path}")
        self.__path__: list[str] = []
        self._path = path
        self._public = public

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        dotted = path[1:]
        if dotted in NAMES:
            value = NAMES[dotted]
        elif dotted in _SPACES:
            value = _Space(path, getattr(self._public, name, None))
        elif self._public is None or name.startswith("__"):
            raise AttributeError(f"gtape does not have TensorFlow's private name "
                                 f"tensorflow.{dotted}")
        else:
            value = getattr(self._public, name)
        return self.__dict__.setdefault(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *(dir(self._public) if self._public else ())})


_tensorflow = _Space("", gtape)


def module(name: str) -> Any:
    """What stands for `tensorflow`, `tensorflow.a.b` …

    Raises:
        ModuleNotFoundError: gtape has no module of this name.
    """
    try:
        return functools.reduce(getattr, name.split(".")[1:], _tensorflow)
    except AttributeError as error:
        raise ModuleNotFoundError(f"No module named {name!r}: {error}", name=name) from None

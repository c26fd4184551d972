"""Names of layers and the paths of their variables: dense, dense_1, 'sequential/dense/kernel'."""

from __future__ import annotations

import re
from collections import Counter
from contextvars import ContextVar

from gtape.core.text import shown

_used: Counter[str] = Counter()
_path: ContextVar[tuple[str, ...]] = ContextVar("gtape.keras.path", default=())


def snake_case(name: str) -> str:
    """`BatchNormalization` as `batch_normalization`, `Conv2D` as `conv2d`."""
    split = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()


def numbered(prefix: str) -> str:
    """`prefix` the first time, then `prefix_1`, `prefix_2` …"""
    count = _used[prefix]
    _used[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def forget() -> None:
    """Start counting anew."""
    _used.clear()


def checked(name: object) -> str:
    """`name`, when it can name a layer. Raises ValueError when it is no string or holds a '/'."""
    if not isinstance(name, str) or "/" in name:
        raise ValueError(f"a name must be a string without '/', such as 'encoder'; got "
                         f"{shown(name)}")
    return name


class scope:
    """Variables made in the block belong to the layer `name`, inside the layers around it."""

    __slots__ = ("_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        path = _path.get()
        inside = path and path[-1] == self._name
        self._token = _path.set(path if inside else (*path, self._name))

    def __exit__(self, *exc: object) -> None:
        _path.reset(self._token)


def path_of(name: str) -> str:
    """The full path of a variable `name` made here."""
    return "/".join((*_path.get(), name))

"""An array module bound to one GPU: its functions compute and allocate there.

CuPy works on the current device of the thread. With one GPU that is always the right one, and
CuPy itself is used; with several, each device has its own `Namespace`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any


class Namespace:
    """`module` with functions that run inside `scope()`; its types and constants as they are."""

    def __init__(self, module: Any, scope: Callable[[], AbstractContextManager[Any]]) -> None:
        self._module = module
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            found = Namespace(found, self._scope)
        elif callable(found) and not isinstance(found, type):
            found = Bound(found, self._scope)
        setattr(self, name, found)
        return found


class Bound:
    """A function that runs inside `scope()`, with its methods, such as `add.at`."""

    def __init__(self, function: Any, scope: Callable[[], AbstractContextManager[Any]]) -> None:
        self._function = function
        self._scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._scope():
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        return Bound(found, self._scope) if callable(found) else found

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

    def __init__(self, module: ModuleType, scope: Callable[[], AbstractContextManager[object]],
                 ) -> None:
        self._module = module
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = Namespace(value, self._scope)
        elif callable(value) and not isinstance(value, type):
            value = Bound(value, self._scope)
        # From now on it is an attribute, and `__getattr__` is not asked.
        setattr(self, name, value)
        return value


class Bound:
    """A function that runs inside `scope()`, with its methods, such as `add.at`."""

    def __init__(self, function: Any, scope: Callable[[], AbstractContextManager[object]]) -> None:
        self._function = function
        self._scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._scope():
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Bound:
        value = getattr(self._function, name)
        return Bound(value, self._scope) if callable(value) else value

"""name_scope: prefixes for the names of variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from gtape.core.formatting import shown

scope_prefix: ContextVar[str] = ContextVar("gtape.name_scope", default="")


class name_scope:
    """Names of variables made inside the block begin with `name/`."""

    __slots__ = ("_name", "_tokens")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"a name scope must be a string; got {shown(name)}")
        self._name = name
        self._tokens: list[Any] = []

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        outer = scope_prefix.get()
        if not self._name:
            full = ""
        elif self._name.endswith("/"):
            full = self._name
        else:
            full = f"{outer}{self._name}/"
        self._tokens.append(scope_prefix.set(full))
        return full

    def __exit__(self, *exc: object) -> None:
        scope_prefix.reset(self._tokens.pop())

"""Reference: a hashable stand-in for a Tensor or Variable, compared by identity."""

from __future__ import annotations

from typing import Any


class Reference:
    """`tensor.ref()`: usable as a dict key; `deref()` gives the object back."""

    __slots__ = ("_object",)

    def __init__(self, target: Any) -> None:
        self._object = target

    def deref(self) -> Any:
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference to {self._object!r}>"

"""AttributeWatch: what the attributes of Python objects are now, to tell whether one changed."""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any

_SIZED = (list, dict, set)


class AttributeWatch:
    """The attributes of `owner`, and of the objects of the classes `followed` that it holds, as
    attributes or in lists, tuples and dicts.

    Numbers and texts are compared by value; lists, dicts and sets by identity and length; all else
    by identity. `seen == other`: nothing changed between the two.
    """

    __slots__ = ("_seen",)

    def __init__(self, owner: Any, followed: tuple[type, ...]) -> None:
        self._seen = [
            (space, tuple(space), tuple(space.values()), tuple(map(_size, space.values())))
            for space in _spaces(owner, followed, {})]

    def hold(self) -> bool:
        """Whether all are the same objects still. It takes no notice of what containers hold."""
        for space, _, values, _ in self._seen:
            if len(space) != len(values) or not all(map(is_, space.values(), values)):
                return False
        return True

    def named(self, name: str) -> list[Any]:
        """The values of the attribute `name` of every object that has one."""
        return [values[names.index(name)] for _, names, values, _ in self._seen if name in names]

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, AttributeWatch) and len(self._seen) == len(other._seen)
                and all(a is b and names == others and sizes == lengths
                        and all(map(_alike, values, found))
                        for (a, names, values, sizes), (b, others, found, lengths) in zip(
                            self._seen, other._seen)))

    __hash__ = None  # type: ignore[assignment]


def _size(value: Any) -> int:
    return len(value) if isinstance(value, _SIZED) else 0


def _alike(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in (int, float, str) and a == b)


def _spaces(owner: Any, followed: tuple[type, ...], found: dict[int, Any],
            ) -> Iterator[dict[str, Any]]:
    """The attributes of an object, and of those that it holds; each object once."""
    space = vars(owner)
    if id(space) in found:
        return
    found[id(space)] = space
    yield space
    for value in tuple(space.values()):
        parts = value.values() if isinstance(value, dict) else (
            value if isinstance(value, (list, tuple)) else (value,))
        for part in parts:
            if isinstance(part, followed):
                yield from _spaces(part, followed, found)

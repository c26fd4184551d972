"""ObjectKey: a key for an object, compared by what it is, which does not keep it alive."""

from __future__ import annotations

import weakref
from typing import Any

#: The identities in use, by the id of their object.
_known: dict[int, ObjectKey] = {}


class ObjectKey:
    """The key of one object. Unlike `id()` it is never reused.

    `watchers` are told when the object is gone: no call can have this key again.
    """

    __slots__ = ("__weakref__", "reference", "watchers")

    def __init__(self, target: Any) -> None:
        self.watchers: weakref.WeakSet[Any] = weakref.WeakSet()
        key = id(target)

        def gone(_: Any, known: Any = _known) -> None:  # a global is None when Python ends
            if known.get(key) is self:
                del known[key]
            for watcher in list(self.watchers):
                watcher.forget(self)

        try:
            #: Gives the object, None when it is gone.
            self.reference: Any = weakref.ref(target, gone)
        except TypeError:
            # It takes no weak reference, so that only holding it keeps its id from being reused.
            self.reference = lambda: target

    @property
    def target(self) -> Any:
        return self.reference()


def identity(value: Any) -> ObjectKey:
    """The key of `value`: the same one every time."""
    found = _known.get(id(value))
    if found is None or found.target is not value:
        found = _known[id(value)] = ObjectKey(value)
    return found

"""What the outermost call decides for the layers inside: whether this is training."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any, NamedTuple


class Call(NamedTuple):
    """`training` as the layer around decided it, or None."""

    training: bool | None


current: ContextVar[Call | None] = ContextVar("gtape.keras.call", default=None)


class CallSignature(NamedTuple):
    """What a layer's `call` takes."""

    names: tuple[str, ...]
    defaults: dict[str, Any]
    open_ended: bool

    def takes(self, name: str) -> bool:
        return name in self.names


def signature_of(call: Any) -> CallSignature:
    """The parameters of a `call` method, without self."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    defaults = {p.name: p.default for p in named if p.default is not p.empty}
    return CallSignature(tuple(p.name for p in named), defaults, len(named) < len(parameters))

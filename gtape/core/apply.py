"""Who executes: eager arrays, or the tracer whose symbols an op was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor


def emit_or_none(op: Any, inputs: Sequence[Any], attrs: tuple[Any, ...],
                 specs: Callable[[], list[Spec]]) -> tuple[Tensor, ...] | None:
    """The symbols of a new graph node when an input is a symbol; None when all is eager."""
    for tensor in inputs:
        if type(tensor) is not EagerTensor and isinstance(tensor, Tensor):
            return tensor._tracer.emit(op, tuple(inputs), attrs, specs())  # type: ignore[attr-defined]
    return None

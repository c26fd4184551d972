"""Who executes: eager arrays, or the trace whose symbols an op was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core.context import tracer_now
from gtape.core.device import ArrayType
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor


def emit_or_none(op: Any, inputs: Sequence[Any], attrs: tuple[Any, ...],
                 specs: Callable[[], list[Spec]], types: Sequence[ArrayType] | None = None,
                 ) -> tuple[Tensor, ...] | None:
    """The symbols of a new graph node when an input is a symbol; None when all is eager.

    `types` are those of the results, where they do not live with the inputs.

    Raises:
        TypeError: a symbol is used after its trace has ended.
    """
    for tensor in inputs:
        if type(tensor) is not EagerTensor and isinstance(tensor, Tensor):
            tracer = tracer_now() or tensor._tracer  # type: ignore[attr-defined]
            if tracer.finished:
                raise TypeError(f"{tensor!r} is out of scope: the function that it belongs to was "
                                f"traced already, and outside of it the tensor has no value. "
                                f"Return it from the function, or keep it in a tf.Variable")
            return tracer.emit(op, inputs, attrs, specs(), types)
    return None

"""FuncGraph and placeholder: Keras runs a layer on them to learn the shape of its result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gtape as tf
from gtape.core.lengths import Sizes
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.state import paused, tracer_now, tracing
from gtape.core.tracer import Tracer

#: What stands in for lengths that are not known: a number larger than those of most axes.
_STAND_IN = 1009


class FuncGraph:
    """A trace that is thrown away."""

    def __init__(self, name: str) -> None:
        self.name = name

    @contextmanager
    def as_default(self) -> Iterator[FuncGraph]:
        tracer = Tracer(tracer_now())
        tracer.sizes = Sizes()  # type: ignore[attr-defined]
        token = tracing.set(tracer)
        try:
            with paused():
                yield self
        finally:
            tracer.finished = True
            tracing.reset(token)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A symbol of the FuncGraph around; None is a length that is not known."""
    tracer = tracer_now()
    dims = TensorShape(shape).as_list()
    sizes = tracer.sizes
    lengths = [sizes.length(i, _STAND_IN) if n is None else n for i, n in enumerate(dims)]
    return tracer.symbol(Spec(tuple(lengths), tf.as_dtype(dtype)))

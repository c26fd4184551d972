"""Functions of host arrays as steps: called at once, or at every call of a traced function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import CPU
from gtape.core.dtypes import DType, string
from gtape.core.errors import NotTraceableError
from gtape.core.placement import current_device
from gtape.core.sites import here, resolve
from gtape.core.spec import Spec
from gtape.core.state import tracer_now
from gtape.core.tensor import Tensor
from gtape.kinds.hosted import HostedOp

Run = Callable[..., Sequence[Any]]


def step(name: str, run: Run, inputs: Sequence[Any], dtypes: Sequence[DType],
         shapes: Sequence[tuple[int, ...]] | None = None, *, lasting: bool = False) -> list[Tensor]:
    """`run(*arrays of the inputs)`, an array or value for each of `dtypes`, as tensors.

    Args:
        shapes: of the results, as far as they are known before `run` is called.
        lasting: it does something besides making its results.

    Raises:
        NotTraceableError: a function is being traced, and the shapes are not known.
    """
    tensors = [convert(x) for x in inputs]

    def call(*values: Tensor) -> list[Tensor]:
        made = run(*[v.numpy() for v in values])
        return [convert(m, d) for m, d in zip(made, dtypes)]

    if tracer_now() is None:
        return call(*tensors)
    if shapes is None:
        raise untraceable(name)
    specs = [Spec(tuple(s), d) for s, d in zip(shapes, dtypes)]
    device = current_device()
    types = [(CPU if d is string else device).typed(d) for d in dtypes]
    op = HostedOp(name, call, specs, types, lasting=lasting, differentiable=False)
    return list(op(*tensors))


def untraceable(name: str) -> NotTraceableError:
    """The error for a step whose results have shapes that are not known before it is called."""
    return NotTraceableError(f"{resolve(*here())}: the shape of what {name} gives is known only "
                             f"when it is called, so the function around it runs as Python")


def each(function: Callable[[Any], Any], values: Any) -> np.ndarray:
    """`function` of each byte string of an array of them, in its shape."""
    array = np.asarray(values, object)
    made = np.empty(array.shape, object)
    flat = made.reshape(-1)
    for i, value in enumerate(array.reshape(-1)):
        flat[i] = function(value)
    return made

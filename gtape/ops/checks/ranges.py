"""Checks that integers lie in a range: now, or in a traced function at every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.trace.symbolic_tensor import SymbolicTensor


def check_rows(xp: ArrayModule, indices: Any, rows: int, name: str) -> None:
    """Raises InvalidArgumentError for an index outside [0, rows), in host memory.

    On a GPU the test would wait for the device; rows out of range give zeros there.
    """
    if xp is np and indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= rows:
            bad = low if low < 0 else high
            raise InvalidArgumentError(f"{name}: indices must lie in [0, {rows}); got {bad}")


@primitive(nondifferentiable=True)
def within_(xp: ArrayModule, x: Array, *, low: int | None, high: int | None, what: str) -> Array:
    """x, whose integers are checked to lie in [low, high)."""
    if x.size:
        least, most = int(x.min()), int(x.max())
        if low is not None and least < low and high is None:
            raise InvalidArgumentError(f"{what} must be >= {low}; got {least}")
        if low is None and high is not None and most >= high:
            raise InvalidArgumentError(f"{what} must be below {high}; got {most}")
        if (low is not None and least < low) or (high is not None and most >= high):
            raise InvalidArgumentError(f"{what} must lie in [{low}, {high}); got numbers from "
                                       f"{least} to {most}")
    return x


within_.infer(lambda x, **_: x)
within_.refuses = True
within_.cases = [case(ints(4, below=5), low=0, high=5, what="indices")]


def within(x: Tensor, low: int | None, high: int | None, what: str) -> Tensor:
    """`x`, whose integers are checked to lie in [low, high): in a traced function at every call.

    Raises:
        InvalidArgumentError: they do not.
    """
    if type(x) is SymbolicTensor:
        return within_(x, low=low, high=high, what=what)
    within_.value(x._t.xp, x._array_(), low=low, high=high, what=what)
    return x


def checked_rows(index: Tensor, rows: int, name: str) -> Tensor:
    """`index`, by `check_rows`: now, or in a traced function at every call."""
    if type(index) is SymbolicTensor:
        on_host = index._t.device.is_host
        return within(index, 0, rows, f"{name}: indices") if on_host else index
    check_rows(index._t.xp, index._array_(), rows, name)
    return index

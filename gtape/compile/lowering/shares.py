"""Shares of a total of exponentials over several axes: the gradient of log-sum-exp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, lowers
from gtape.compile.ir.nodes import Value
from gtape.core.spec import Spec
from gtape.ops.elementwise import scalars
from gtape.ops.reductions import more_reductions


@lowers(more_reductions.share_)
def _(b: Builder, x: list[Value], attrs: dict[str, Any], specs: Sequence[Spec]) -> Value | None:
    (value,), axes = x, attrs["axis"]
    if value.dtype not in ("float32", "float64") or not value.size:
        return None
    top = b.reduced("max", value, axes, True)
    zero = b.splat(0.0, top.shape, top.dtype)
    finite = elementwise(b, scalars.where, elementwise(b, scalars.is_finite, top), top, zero)
    terms = elementwise(b, scalars.exp, elementwise(b, scalars.subtract, value, finite))
    total = b.reduced("sum", terms, axes, True)
    one = b.splat(1.0, total.shape, total.dtype)
    some = elementwise(b, scalars.where, elementwise(b, scalars.equal, total, zero), one, total)
    return elementwise(b, scalars.divide, terms, some)

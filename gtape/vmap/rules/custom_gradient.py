"""Batching rule of functions with a custom gradient, as they appear in traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.autodiff.custom_gradient import run_custom
from gtape.core.tensor import Tensor
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.vmap.batch_trace import Attrs, Batch, batches
from gtape.vmap.operand import Operand
from gtape.vmap.rules.axes import Operands


@batches("custom_step")
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    """The outputs for all elements, whose backward is that of one element in a batch."""
    count, end = attrs["count"], attrs["count"] + attrs["size"]
    arguments, captured = xs[:count], xs[end:]

    def pull(upstream: Sequence[Tensor]) -> list[Any]:
        batch = Batch(xs[0].size)
        seeds = [batch.enter(u) for u in upstream]
        values = [batch.enter(x) if x.batched else x.tensor for x in captured]
        parts = batch.run(lambda: [_dense(p) for p in op.pulled(seeds, values)])
        found = iter(batch.results([p for p in parts if p is not None]))
        return [None if p is None else _of(x, next(found)) for x, p in zip(arguments, parts)]

    return run_custom(op.tf_name, [x.tensor for x in arguments], [x.full() for x in xs[count:end]],
                      pull)


def _dense(part: Any) -> Any:
    return part.to_dense() if hasattr(part, "to_dense") else part


def _of(argument: Operand, part: Tensor) -> Tensor:
    """The gradient of an argument: one that all elements share gets the sum of theirs."""
    return part if argument.batched else reduce_sum_(part, axis=(0,))

"""A function of one element applied to all elements at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.errors import NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import Tensor
from gtape.ops.indexing.getitem import getitem_
from gtape.vmap.batch_trace import BatchTracer

#: What a function says that needs the numbers of an element, or draws other ones for each.
NEEDS_ELEMENTS = (NotTraceableError, OperatorNotAllowedInGraphError, NotImplementedError,
                  AttributeError)


def batch_of(fn: Callable[[Any], Any], elems: TensorLike, leaves: Sequence[Tensor], count: int,
             ) -> tuple[BatchTracer, list[Tensor], Any]:
    """A batch of the elements of `elems`, whose tensors are `leaves`, with fn's results: flat, and
    as they are.

    Raises:
        NEEDS_ELEMENTS: `fn` cannot be applied to all elements at once.
    """
    (size,) = require_known((count,))
    batch = BatchTracer(size)
    elements = [getitem_(x, key=(0,)) if x.spec.shape[0] == 1 != size else batch.enter(x)
                for x in leaves]
    results = batch.run(fn, nest.pack_sequence_as(elems, elements))
    return batch, batch.run(lambda: [_tensor(leaf) for leaf in nest.flatten(results)]), results


def _tensor(leaf: TensorLike) -> Tensor:
    return convert(leaf.to_dense() if hasattr(leaf, "to_dense") else leaf)

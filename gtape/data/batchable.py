"""Batchable: which traces give the same, bit for bit, for all rows at once as for one after the
other."""

from __future__ import annotations

from typing import Any

#: Ops that move values, or compute each result from values of one row in an order that does not
#: depend on the number of rows.
_ROWWISE = frozenset((
    "identity_", "reshape_", "transpose_", "expand_dims_", "squeeze_", "broadcast_to_", "getitem_",
    "concat_", "stack_", "unstack_", "split_", "pad_", "cast_", "gather_", "one_hot_", "reverse_",
    "slice_", "strided_slice_", "tile_", "stop_gradient_"))


def batchable(graph: Any) -> bool:
    """Whether every node is elementwise, moves values only, or says how many rows are done."""
    from gtape.opdef.elementwise import Elementwise

    return all(isinstance(node.op, Elementwise) or node.op.name in _ROWWISE
               or getattr(node.op, "rows", None) is not None for node in graph.nodes)

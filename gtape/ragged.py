"""gtape.ragged: RaggedTensors of lists, ranges and rows, and the functions of them."""

from __future__ import annotations

from gtape.ops.ragged.factories import (
    boolean_mask,
    constant,
    cross,
    cross_hashed,
    map_flat_values,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack,
    stack_dynamic_partitions,
)
from gtape.ops.ragged.factories import range_ as range

__all__ = [
    "boolean_mask", "constant", "cross", "cross_hashed", "map_flat_values", "range",
    "row_splits_to_segment_ids", "segment_ids_to_row_splits", "stack", "stack_dynamic_partitions"]

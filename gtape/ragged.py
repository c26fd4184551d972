"""gtape.ragged: RaggedTensors of lists, ranges and rows, and the functions of them."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.ragged.factories": """
        constant cross cross_hashed map_flat_values row_splits_to_segment_ids
        segment_ids_to_row_splits stack_dynamic_partitions range=range_""",
    "gtape.ops.ragged.indexing": "boolean_mask",
    "gtape.ops.ragged.joining": "stack",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)

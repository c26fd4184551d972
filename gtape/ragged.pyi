"""Names of gtape.ragged; written by `python -m gtape._stub`."""

from gtape.ops.ragged.factories import constant as constant
from gtape.ops.ragged.factories import cross as cross
from gtape.ops.ragged.factories import cross_hashed as cross_hashed
from gtape.ops.ragged.factories import map_flat_values as map_flat_values
from gtape.ops.ragged.factories import range_ as _range
from gtape.ops.ragged.factories import row_splits_to_segment_ids as row_splits_to_segment_ids
from gtape.ops.ragged.factories import segment_ids_to_row_splits as segment_ids_to_row_splits
from gtape.ops.ragged.factories import stack_dynamic_partitions as stack_dynamic_partitions
from gtape.ops.ragged.indexing import boolean_mask as boolean_mask
from gtape.ops.ragged.joining import stack as stack

range = _range
